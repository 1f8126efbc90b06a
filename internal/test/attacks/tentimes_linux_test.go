package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// reported is an attack as somebody has reported it, at its own rate. Beside each stands a neighbour that is in trouble
// again and again, whose incidents and limit are to be complete, and another address whose requests are answered.
type reported struct {
	name   string
	lasted time.Duration // in the report; the proof takes ten times as long
	starts bool          // ten starts of the agent in place of that
	viewer viewer        // root if it has no name
	args   []string
	friend friendly
	before func(t *testing.T, incidents string)
	attack func(ctx context.Context, t *testing.T, s *scene) progress
}

// progress is what is looked at meanwhile, and said at the end.
type progress struct {
	each func(*document)
	said func() string
}

// inTrouble is how far apart the neighbour's troubles are: each is an incident of its own.
const inTrouble = 150 * time.Second

// times is ten, and one where this is only tried.
func times() int { return proof.Size(10, 1) }

// lanes are the attacks, those of one after the other.
func lanes(t *testing.T) map[string][]reported {
	t.Helper()
	const longest = 260 * time.Second
	return map[string][]reported{
		"new listeners, followed": {newListeners("on", longest)},
		"new listeners":           {newListeners("off", longest)},
		"servers in trouble":      {serversInTrouble(longest)},
		"one address": {
			besieged("64 without the body", time.Minute, hog{request: hogs()["health without the body"].request, every: 10 * time.Second}, 64),
			slowReaders(),
			besieged("pages without the body", 18*time.Second, hog{request: hogs()["pages without the body"].request, every: 900 * time.Millisecond}, 200),
			guessers(t),
		},
		"others": {
			stopped(),
			{
				name: "ten pods a second", lasted: time.Minute, viewer: viewer{name: "DaemonSet", caps: daemonSet(t)}, args: []string{"--all-namespaces"},
				attack: func(_ context.Context, t *testing.T, s *scene) progress {
					began := make(chan int, 1)
					go func() { began <- s.pods10(t, warm+time.Duration(times())*time.Minute) }()
					return progress{said: func() string { return fmt.Sprintf("%d pods", <-began) }}
				},
			},
			hostileRecording(),
		},
	}
}

// TestTenTimes: each attack that was reported, at its own rate and for ten times as long. Those that do not disturb each
// other are beside each other, each with an agent of its own.
func TestTenTimes(t *testing.T) {
	nettest.Root(t)
	proof.Skip(t)
	program, all := build(t), lanes(t)
	var mu sync.Mutex
	lines := map[string]string{}
	t.Run("all", func(t *testing.T) {
		for _, lane := range sortedKeys(all) {
			t.Run(lane, func(t *testing.T) {
				t.Parallel()
				for _, a := range all[lane] {
					if line := a.all(t, program); line != "" {
						mu.Lock()
						lines[a.name] = line
						mu.Unlock()
					}
				}
			})
		}
	})
	t.Log("\n| attack | for | itself | with children | gap | control | oldest | SIGTERM | what came of it |\n|---|---|---|---|---|---|---|---|---|\n" +
		strings.Join(slices.Collect(func(yield func(string) bool) {
			for _, name := range sortedKeys(lines) {
				yield(lines[name])
			}
		}), "\n"))
}

// all is one attack, and its line in the table; "" where it was not asked for, or ended early.
func (a *reported) all(t *testing.T, program string) string {
	t.Helper()
	starts, last := 1, time.Duration(times())*a.lasted
	long := last.String()
	if a.starts {
		starts, last = times(), a.lasted
		long = fmt.Sprintf("%d starts", starts)
	}
	var worst row
	for range starts {
		t.Run(a.name, func(t *testing.T) {
			r := a.run(t, program, last)
			r.log(t, a.viewer.name, a.name)
			if err := r.inTime(); err != nil {
				t.Log(err)
				assert.False(t, everything(), "%v", err) // on a busy machine the control may be spared
			}
			worst = row{
				group: max(r.group, worst.group), resident: max(r.resident, worst.resident), said: r.said,
				gap: max(r.gap, worst.gap), oldest: max(r.oldest, worst.oldest), end: max(r.end, worst.end), control: max(r.control, worst.control),
			}
		})
	}
	if worst.said == "" {
		return ""
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %d | %s |", a.name, long, worst.resident>>20, worst.group>>20,
		worst.gap.Milliseconds(), worst.control.Milliseconds(), worst.oldest.Milliseconds(), worst.end.Milliseconds(), worst.said)
}

// run lets one agent stand it for that long.
func (a *reported) run(t *testing.T, program string, last time.Duration) row {
	t.Helper()
	incidents := filepath.Join(public(t), "incidents")
	require.NoError(t, os.Mkdir(incidents, 0o750))
	if a.before != nil {
		a.before(t, incidents)
	}
	s := newScene(t, a.viewer, program, slices.Concat([]string{"--all", "--incident-dir", incidents}, a.args)...)
	heard := filepath.Join(public(t), "heard")
	require.NoError(t, os.WriteFile(heard, nil, 0o666))
	require.NoError(t, os.Chmod(heard, 0o666))
	troubled := neighbourly(neighbourPort, true)
	troubled.part.Every, troubled.part.Heard = inTrouble, heard
	troubled.start(t, s.pods, s.java)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := a.attack(ctx, t, s)
	friend := a.friend
	friend.last, friend.least, friend.every = 24*time.Hour, 1, time.Second
	answers := s.friendBeside(ctx, t, friend)
	used := s.stays(t, last, func(d *document) {
		if p.each != nil {
			p.each(d)
		}
	})
	cancel()
	asked, answered := answers()
	assert.GreaterOrEqual(t, answered, 0.99*float64(asked), "of %d", asked)
	return s.finish(t, fmt.Sprintf("%s; %.0f of %d answers for another address, %s; %s", p.said(), answered, asked, s.complete(t, heard), used))
}

// complete holds the neighbour's incidents against how often it was in trouble, and against what its socket has dropped.
func (s *scene) complete(t *testing.T, heard string) string {
	t.Helper()
	assert.True(t, s.knows(t, s.look(t), neighbourPort), "the neighbour's limit")
	var lost uint64
	var often, recorded, packets int
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		text, err := os.ReadFile(heard)
		require.NoError(t, err)
		often, lost = strings.Count(string(text), "\n"), s.droppedBy(t, neighbourPort)
		recorded, packets = 0, 0
		s.incidents(t, func(all []api.IncidentSummary) bool {
			for _, i := range all {
				if i.Port == neighbourPort && s.has(t, i.NetNS) {
					recorded++
					packets += int(i.DroppedPackets)
				}
			}
			return true
		})
		if often > 0 && recorded == often && packets == int(lost) {
			return fmt.Sprintf("%d of %d incidents of a neighbour with %d of %d packets", recorded, often, packets, lost)
		}
	}
	assert.Fail(t, "a neighbour's incidents", "%d of %d, with %d of %d packets", recorded, often, packets, lost)
	return ""
}

// droppedBy is how many packets the kernel has dropped at a listener, by the socket's own count.
func (s *scene) droppedBy(t *testing.T, port int) uint64 {
	t.Helper()
	out, err := s.pods.Command("ss", "-H", "-t", "-l", "-n", "-m", "-O", "sport", "=", ":"+strconv.Itoa(port)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	m := regexp.MustCompile(`,d(\d+)\)`).FindSubmatch(out)
	require.NotNil(t, m, "%s", out)
	n, err := strconv.ParseUint(string(m[1]), 10, 64)
	require.NoError(t, err)
	return n
}

// besieged is the port, by that many connections of one address.
func besieged(name string, lasted time.Duration, h hog, connections int) reported {
	return reported{name: name, lasted: lasted, attack: func(ctx context.Context, t *testing.T, s *scene) progress {
		var opened atomic.Int64
		s.besiege(ctx, t, h, connections, 1, &opened)
		return progress{said: func() string {
			assert.Less(t, s.descriptors(t), 250, "descriptors of the agent")
			return fmt.Sprintf("%d connections", opened.Load())
		}}
	}}
}

// slowReaders are 64 that read a recording of 3.6 MB at a kilobyte a second.
func slowReaders() reported {
	var h hog
	a := besieged("64 slow readers", time.Minute, hog{}, 0)
	a.before = func(t *testing.T, incidents string) {
		id := recordingOf(t, incidents, slices.Repeat([]string{`{"x":"` + strings.Repeat("x", 45<<10) + `"}`}, 80)...)
		h = hog{request: "GET /api/v1/incidents/" + id + "/recording HTTP/1.1\r\nHost: localhost\r\n\r\n", every: 10 * time.Second}
	}
	a.attack = func(ctx context.Context, t *testing.T, s *scene) progress {
		return besieged("", 0, h, 64).attack(ctx, t, s)
	}
	return a
}

// guessers are eight addresses that send wrong passwords, while a right one comes that the agent has not seen since its start.
func guessers(t *testing.T) reported {
	t.Helper()
	h := hog{request: neighbours()["wrong passwords"], leaves: true, every: 200 * time.Millisecond}
	return reported{
		name: "wrong passwords of eight addresses", lasted: 20 * time.Second, starts: true, args: []string{"--web.config.file", passwords(t)},
		friend: friendly{user: "v", waits: 10 * time.Second}, // as long as Prometheus does
		attack: func(ctx context.Context, t *testing.T, s *scene) progress {
			var opened atomic.Int64
			s.besiege(ctx, t, h, 8, 8, &opened)
			return progress{said: func() string { return fmt.Sprintf("%d guesses", opened.Load()) }}
		},
	}
}

// newListeners are 250 a second.
func newListeners(handshakes string, lasted time.Duration) reported {
	return reported{
		name: "new listeners, handshakes " + handshakes, lasted: lasted, args: []string{"--handshakes=" + handshakes},
		attack: func(_ context.Context, t *testing.T, s *scene) progress {
			churn := attack{part: part{From: hostilePort, To: hostilePort + 1, PerSecond: 250, Threads: []string{"http-nio-18080-e"}}}
			churn.start(t, s.pods, s.java)
			return progress{said: func() string { return "250 a second" }}
		},
	}
}

// serversInTrouble are 33 processes with a full queue, and a new server every nine seconds: a hundred addresses in a quarter of an hour.
func serversInTrouble(lasted time.Duration) reported {
	return reported{name: "33 servers in trouble", lasted: lasted, attack: func(_ context.Context, t *testing.T, s *scene) progress {
		for port := 19_000; port < 19_033; port++ {
			full := attack{args: application(), files: map[string]string{"app.jar": bootJar(nil)}, part: part{From: port, To: port + 1, NumberedOf: 1, Full: true}}
			full.start(t, s.pods, s.java)
		}
		churn := attack{part: part{
			From: hostilePort, To: hostilePort + 1, Threads: slices.Repeat([]string{"http-nio-18080-e"}, 8), Every: 9 * time.Second,
			Spawn: []string{"-jar", "app.jar", "--server.port=PORT"},
		}}
		churn.start(t, s.pods, s.java)
		return progress{said: func() string {
			var open int
			s.incidents(t, func(all []api.IncidentSummary) bool {
				for _, i := range all {
					if i.Ended == nil {
						open++
					}
				}
				return true
			})
			return fmt.Sprintf("%d incidents at once", open)
		}}
	}}
}

// stopped are servers of a user who stops what reads their files. A server of another user comes twice a minute, and the one before it ends:
// what is watched is as many all the time.
func stopped() reported {
	return reported{name: "60 whose readers are stopped", lasted: 90 * time.Second, attack: func(_ context.Context, t *testing.T, s *scene) progress {
		stopped := s.stoppedCrowd(t)
		var began time.Time
		var longest time.Duration
		n, known, pid := 0, true, 0
		each := func(d *document) {
			port := neighbourPort + 100 + n
			if !known && s.knows(t, d, port) {
				known, longest = true, max(longest, time.Since(began))
			}
			require.True(t, known || time.Since(began) < time.Minute, "the limit of the %dth neighbour: %v", n, d.Unavailable)
			if known && time.Since(began) > 30*time.Second {
				if pid > 0 {
					require.NoError(t, unix.Kill(pid, unix.SIGKILL))
				}
				n, known, began = n+1, false, time.Now()
				pid = neighbourly(port+1, false).start(t, s.pods, s.java)
			}
		}
		return progress{each: each, said: func() string {
			require.Positive(t, stopped.Load())
			return fmt.Sprintf("%d stopped, the limits of %d further servers after %.0f s at most", stopped.Load(), n, longest.Seconds())
		}}
	}}
}

// hostileRecording is one of a megabyte that would become hundreds in memory.
func hostileRecording() reported {
	var file string
	return reported{
		name: "a hostile recording", lasted: 10 * time.Second, starts: true,
		before: func(t *testing.T, incidents string) {
			file = filepath.Join(incidents, recordingOf(t, incidents, `{"Listener":{"Limits":[`+strings.Repeat("{},", 340_000)+`{}]}}`)+".tcpdiag")
		},
		attack: func(_ context.Context, t *testing.T, s *scene) progress {
			program := s.cmd.Args[slices.Index(s.cmd.Args, "agent")-1]
			for _, command := range []string{"report", "replay"} {
				r := s.runs(t, program, []string{command, file})
				_ = r.cmd.Wait() // it may be refused, and that is said
				r.group.end()
				assert.LessOrEqual(t, r.group.most.Load(), int64(maxPeak), "%s: memory", command)
				assert.Zero(t, r.group.killed(), command)
			}
			return progress{said: func() string { return "read at the start, by report and by replay" }}
		},
	}
}

// recordingOf makes a recording of such frames that has no end, and says its ID.
func recordingOf(t *testing.T, incidents string, frames ...string) (id string) {
	t.Helper()
	now := time.Now().UTC()
	id = "000001-" + now.Format("20060102T150405Z") + "-8080"
	head := recording.Line{Begin: &recording.Header{Schema: recording.Schema, ID: id, Began: now, Address: "127.0.0.1:8080", Port: 8080, Owner: "uid " + nobody}}
	text, err := head.Encode()
	require.NoError(t, err)
	for _, frame := range frames {
		line, err := recording.Line{Key: json.RawMessage(frame)}.Encode()
		require.NoError(t, err)
		text = append(text, line...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(incidents, id+".tcpdiag"), text, 0o640))
	return id
}
