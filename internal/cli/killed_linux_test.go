package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const (
	// How many incidents TestLongKilledAtAnyMoment has. At its full size the machine is
	// the test's own, and the age of the last record is asserted.
	allKills, fewKills = 100, 4
	// lastSecond is the most that a killed agent may lose.
	lastSecond = time.Second

	victimVariable = "TCPDIAG_TEST_VICTIM"
	victimPort     = 8080
	victimBacklog  = 3
)

// The kinds of trouble. A muted server never accepts, a busy one holds as many
// connections as it may, a stopped one got a SIGSTOP, a dead one a SIGKILL.
const (
	muted = iota
	full
	busyVictim
	stoppedVictim
	deadVictim
	victims
)

// serveVictim makes this test's program a server with Tomcat's limits.
func serveVictim(ctx context.Context) int {
	s, err := demo.Listen(ctx, demo.ServerOptions{
		Address: "127.0.0.1:" + strconv.Itoa(victimPort), MaxConnections: 2, AcceptCount: victimBacklog, MaxThreads: 1, ServiceTime: time.Minute,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return command.ExitFailure
	}
	_ = s.Serve(ctx)
	return command.ExitOK
}

// victim is a server in trouble, and the agent that sees it.
type victim struct {
	kind   int
	ns     *nettest.NS
	addr   netip.AddrPort
	server *exec.Cmd
	agent  *process
	dir    string
	random *rand.Rand
}

func newVictim(t *testing.T, kind int, random *rand.Rand) *victim {
	v := &victim{kind: kind, ns: nettest.Namespace(t), dir: filepath.Join(t.TempDir(), "incidents"), random: random}
	v.addr = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), victimPort)
	if kind == muted || kind == full {
		v.server = v.ns.Command("sleep", "600")
		v.ns.Do(func() {
			l := nettest.Listen(t, nettest.ListenOptions{Address: v.addr.String(), Backlog: victimBacklog})
			v.server.ExtraFiles = []*os.File{l.File(t)}
			require.NoError(t, v.server.Start())
			_ = v.server.ExtraFiles[0].Close()
			l.Close()
		})
	} else {
		v.server = v.ns.Command(os.Args[0])
		v.server.Env = append(os.Environ(), victimVariable+"=1")
		require.NoError(t, v.server.Start())
	}
	ended := make(chan struct{})
	go func() { _ = v.server.Wait(); close(ended) }()
	t.Cleanup(func() { _ = v.server.Process.Kill(); <-ended })
	v.agent = start(t, v.ns, nil, "--port", strconv.Itoa(victimPort), "--incident-dir", v.dir)
	v.agent.becomes(t, `tcpdiag_target_up\{.*\}`, 1)
	v.settles(t)
	return v
}

// settles waits for two more snapshots: the recorder has then seen the server.
func (v *victim) settles(t *testing.T) {
	t.Helper()
	made := make(map[string]bool)
	require.Eventually(t, func() bool {
		code, body := v.agent.try(http.MethodGet, "/api/v1/snapshot")
		var doc struct{ Time string }
		if code == http.StatusOK && json.Unmarshal([]byte(body), &doc) == nil {
			made[doc.Time] = true
		}
		return len(made) > 2
	}, time.Minute, 20*time.Millisecond)
}

// befall brings the trouble about.
func (v *victim) befall(t *testing.T) {
	switch v.kind {
	case deadVictim:
		require.NoError(t, v.server.Process.Kill())
		return
	case stoppedVictim:
		require.NoError(t, v.server.Process.Signal(syscall.SIGSTOP))
	}
	v.ns.Do(func() { nettest.Queue(t, v.addr, victimBacklog+1) })
}

// press sends clients to a server that has no room for them, or soon has none.
func (v *victim) press(t *testing.T) {
	if v.kind != full && v.kind != deadVictim {
		v.ns.Do(func() { nettest.Attempts(t, v.addr, 1+v.random.IntN(3)) })
	}
}

// listed is the newest incident that the agent lists.
func (v *victim) listed(t *testing.T) *api.IncidentSummary {
	code, body := v.agent.try(http.MethodGet, "/api/v1/incidents")
	require.Equal(t, http.StatusOK, code)
	var list api.Incidents
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	if len(list.Incidents) == 0 {
		return &api.IncidentSummary{}
	}
	return &list.Incidents[0]
}

// until presses until the newest incident is as wanted.
func (v *victim) until(t *testing.T, wanted func(*api.IncidentSummary) bool) {
	// What the recorder did not see up may still be starting: for two minutes.
	for deadline := time.Now().Add(4 * time.Minute); !wanted(v.listed(t)); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "no such incident")
		v.press(t)
	}
}

// whiles presses for a random time, up to 2.5 seconds.
func (v *victim) whiles(t *testing.T) {
	for end := time.Now().Add(time.Duration(v.random.IntN(2500)) * time.Millisecond); time.Now().Before(end); {
		v.press(t)
		time.Sleep(time.Until(end) % (50 * time.Millisecond))
	}
}

// die ends the server, as it may be, and the agent; at is when.
func (v *victim) die(t *testing.T) (seen, at time.Time) {
	v.befall(t)
	v.until(t, func(s *api.IncidentSummary) bool { return s.LastSeen.After(s.Began) })
	v.whiles(t)
	if v.kind != deadVictim && v.random.IntN(3) == 0 {
		require.NoError(t, v.server.Process.Kill())
		v.kind = deadVictim
		v.until(t, func(s *api.IncidentSummary) bool { return s.Status == "down" })
		v.whiles(t)
	}
	seen = v.listed(t).LastSeen
	time.Sleep(time.Duration(v.random.IntN(1100)) * time.Millisecond)
	require.NoError(t, v.agent.Process.Kill())
	at = time.Now()
	v.agent.done <- <-v.agent.done
	return seen, at
}

// kept reads the recording that is left, judges it again, and returns how old its
// last record was at a moment.
func (v *victim) kept(t *testing.T, seen, at time.Time) (age time.Duration) {
	files, err := filepath.Glob(filepath.Join(v.dir, "*.tcpdiag"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	r, err := recording.NewReader(bytes.NewReader(text))
	require.NoError(t, err)
	var last time.Time
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		requireSameVerdict(t, f)
		last = f.At
	}
	if r.Behind.At.After(last) {
		last = r.Behind.At
	}
	require.Nil(t, r.End)
	require.Zero(t, r.Damaged)
	require.False(t, last.Before(seen), "what was listed is kept: %v, %v", last, seen)
	var out bytes.Buffer
	require.Equal(t, command.ExitOK, Main(context.Background(), []string{"replay", files[0]}, io.Discard, &out), out.String())
	return at.Sub(last)
}

func requireSameVerdict(t *testing.T, f *recording.Frame) {
	t.Helper()
	v, same, judged := f.Replay()
	require.True(t, judged)
	require.True(t, same)
	recorded, err := json.Marshal(f.Listener.Verdict)
	require.NoError(t, err)
	again, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, string(recorded), string(again))
	require.NotEqual(t, model.NumStatuses, v.Status)
}

// Real agents, and real servers in trouble of random kinds. One of the two, or
// first the one and then the other, gets a SIGKILL at a random moment. What the
// agent had seen up to the last second is in its file, and judged again it is the
// same in every byte.
func TestLongKilledAtAnyMoment(t *testing.T) {
	nettest.Root(t)
	count := proof.Size(allKills, fewKills)
	var oldest time.Duration
	for i := range count {
		random := rand.New(rand.NewPCG(uint64(i), 18))
		kind := (i + random.IntN(2)) % victims
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Logf("kind %d", kind)
			v := newVictim(t, kind, random)
			seen, at := v.die(t)
			age := v.kept(t, seen, at)
			t.Logf("kind %d, ended as %d: the last record was %v old", kind, v.kind, age.Round(time.Millisecond))
			oldest = max(oldest, age)
			if proof.Full() {
				require.LessOrEqual(t, age, lastSecond)
			}
		})
	}
	t.Logf("%d incidents: the oldest last record was %v old", count, oldest.Round(time.Millisecond))
}
