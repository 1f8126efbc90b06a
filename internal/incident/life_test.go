package incident

import (
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// life is a listener with a past, judged as the observer judges.
type life struct {
	random     *rand.Rand
	now        time.Time
	pid        int
	listener   *model.Listener
	hysteresis diagnosis.Hysteresis
	total      uint64
	window     uint64
}

func newLife(seed uint64) *life {
	return &life{random: rand.New(rand.NewPCG(seed, 1)), now: time.Now(), pid: 4711}
}

// trouble is a kind of it.
type trouble int

const (
	calm trouble = iota
	connectionsFull
	threadsFull
	idleFull
	filesFull
	stopped
	closed // and expected
	absent
	kinds
)

func setting(n int) *model.Setting[int] {
	return &model.Setting[int]{Value: n, Kind: model.SourceFile, Source: "application.yml"}
}

// next is the snapshot of about a second later, nil for a listener that is not there.
func (v *life) next(kind trouble) *model.Snapshot {
	elapsed := time.Second + time.Duration(v.random.IntN(40_000_003))
	v.now = v.now.Add(elapsed)
	s := &model.Snapshot{Time: v.now, Interval: time.Minute, Host: "web-1", Kernel: "6.18.0"}
	if kind == absent {
		v.listener = nil
		return s
	}
	l := v.look(kind, elapsed)
	e := symptoms.Input{Now: l, Before: v.listener, Elapsed: elapsed, Interval: time.Minute, Sysctl: map[string]int{"somaxconn": 4096, "tcp_syncookies": 1}}
	if v.listener != nil && l.Listening() {
		e.Shown = new(v.hysteresis.Shown())
	}
	th := reading.DefaultThresholds()
	l.Limits = reading.Headroom(l, v.listener, elapsed, e.Sysctl, th)
	l.Verdict, l.Basis = diagnosis.Judge(e, th), e.Basis()
	if v.listener != nil && l.Listening() {
		l.Basis.Shown = new(v.hysteresis.Shown())
		l.Verdict = v.hysteresis.Apply(v.now, l.Verdict)
	}
	v.listener = l
	s.Listeners = []model.Listener{*l}
	return s
}

func (v *life) look(kind trouble, elapsed time.Duration) *model.Listener {
	if kind == closed {
		return &model.Listener{ID: model.ListenerID{NetNS: 7}, Port: 8080, Expected: true}
	}
	l := &model.Listener{
		ID:   model.ListenerID{NetNS: 7, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), 8080)},
		Port: 8080, Inode: 99, Members: 1, Expected: true,
		Process: &model.Process{
			At: v.now.Add(-time.Duration(v.random.IntN(1e9))), PID: v.pid, Comm: "java", StartTime: 5,
			OpenFiles: new(60 + v.random.IntN(5)), OpenFilesLimit: new(1000), Threads: new(40),
			RunDelay: new(time.Duration(v.random.IntN(1e6))),
		},
		Connector: &model.Connector{
			Server: "tomcat", Version: "10.1.55", MaxConnections: setting(60), AcceptCount: setting(20), MaxThreads: setting(20),
			PoolThreads: new(20), KeepAliveTimeout: &model.Setting[time.Duration]{Value: time.Minute, Kind: model.SourceDefault},
		},
		SynBacklog:  &model.SynBacklog{Limit: 20},
		AcceptQueue: &model.AcceptQueue{Limit: 20, Peak: new(0), SocketDrops: new(v.total)},
		Connections: &model.Connections{At: v.now, Reset: new(0), States: map[string]int{"ESTABLISHED": v.random.IntN(70)}},
	}
	v.fill(l, kind)
	l.AcceptQueue.Samples = v.samples(elapsed, l.AcceptQueue.Length)
	l.Losses = &model.Losses{DroppedPackets: v.window}
	if v.window > 0 {
		l.Losses.By = []model.Drops{{DropKey: model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}, Packets: v.window, Evidence: model.EvidencePhases}}
		l.Losses.WorstCase = []string{"connect_timeout"}
	}
	l.Totals = model.Totals{Dropped: map[model.DropKey]uint64{{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}: v.total}}
	return l
}

// samples are those of the time since the last snapshot: an empty queue sees one run.
func (v *life) samples(elapsed time.Duration, length int) *model.QueueSamples {
	s := &model.QueueSamples{From: v.now.Add(10*time.Millisecond - elapsed), To: v.now, Runs: []model.QueueRun{{}}}
	for i := 1; length > 0 && i < 99; i++ {
		s.Runs = append(s.Runs, model.QueueRun{
			At: time.Duration(i) * 10 * time.Millisecond, Length: uint32(v.random.IntN(length + 1)), Dropped: uint32(v.random.IntN(2)),
		})
	}
	return s
}

func (v *life) fill(l *model.Listener, kind trouble) {
	set := func(p model.Phase, n int) { l.Connections.Phases[p] += n; l.Connections.Accepted += n }
	drop := func(n int) {
		l.AcceptQueue.Length, l.AcceptQueue.OldestWait = 21, new(3*time.Second)
		v.total += uint64(n)
		v.window += uint64(n)
	}
	switch kind {
	case connectionsFull:
		set(model.InService, 20)
		set(model.Waiting, 40)
		drop(v.random.IntN(50))
	case threadsFull:
		set(model.InService, 20)
		set(model.Waiting, 10+v.random.IntN(10))
	case idleFull:
		set(model.Idle, 55)
		set(model.InService, 5)
		drop(v.random.IntN(5))
	case filesFull:
		set(model.InService, 10)
		l.Process.OpenFiles = new(1000)
		drop(v.random.IntN(5))
	case stopped:
		l.Process.Stopped = true
		drop(v.random.IntN(5))
	default:
		set(model.InService, v.random.IntN(5))
		v.window = 0
	}
}

// direct writes at once what a tracker has to record.
type direct struct {
	*writer
	frames []*recording.Frame // of the latest recording
	full   bool               // no room in the queue
}

func (d *direct) begin(c *open, h *recording.Header) bool {
	d.write(job{of: c, begin: h})
	d.frames = nil
	return true
}

func (d *direct) frame(c *open, f *recording.Frame) bool {
	if d.full {
		c.lost = true
		return true
	}
	d.write(job{of: c, frame: f, after: c.lost})
	c.lost = false
	d.frames = append(d.frames, f)
	return true
}

func (d *direct) tick(c *open, t *recording.Tick) bool {
	d.write(job{of: c, tick: t})
	return true
}

func (d *direct) end(c *open, e *recording.End) bool {
	d.write(job{of: c, end: e})
	return true
}

// seconds are as many of one kind, recorded.
func (v *life) seconds(n int, kind trouble, t *tracker, d *direct) {
	for range n {
		t.record(v.next(kind), d)
	}
}

// story is that of a recording.
func (d *direct) story(t *testing.T, id string) *story.Story {
	t.Helper()
	in, err := d.open(id)
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	out, err := story.Read(in)
	require.NoError(t, err)
	return out
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func someLimits() Limits { return Limits{Files: 200, Bytes: 64 << 20, Age: 30 * 24 * time.Hour} }

func newDirect(t *testing.T, dir string, l Limits) (*direct, *tracker) {
	t.Helper()
	d := &direct{writer: newWriter(Options{Dir: dir, Limits: l, Log: quiet(), Now: time.Now, Version: "test"})}
	d.prepare()
	return d, &tracker{history: NewHistory()}
}

// observe is what the recorder does with a snapshot.
func (t *tracker) record(s *model.Snapshot, to recordings) {
	t.history.Observe(s)
	t.observe(s, to)
}

func readAll(t *testing.T, in io.Reader) (*recording.Reader, []*recording.Frame) {
	t.Helper()
	r, err := recording.NewReader(in)
	require.NoError(t, err)
	var out []*recording.Frame
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r, out
		}
		require.NoError(t, err)
		out = append(out, f)
	}
}
