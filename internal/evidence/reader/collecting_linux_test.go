package reader

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// collects makes the server collect garbage until the test ends.
func (s *server) collects(t *testing.T) {
	t.Helper()
	var done sync.WaitGroup
	done.Go(func() {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/control.jsp?op=collect", s.ports[control]), http.NoBody)
		if err != nil {
			return
		}
		response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
	})
	t.Cleanup(done.Wait) // the server has ended with the test's context
}

// visits connects to a connector, and leaves by a reset, again and again.
func (s *server) visits(t *testing.T, connector int) (leave func()) {
	t.Helper()
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			c, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(s.ports[connector]), time.Second)
			if err != nil {
				continue
			}
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
			time.Sleep(time.Millisecond) // some hundred a second: the queue is to stay short
		}
	})
	return func() {
		close(stop)
		done.Wait()
	}
}

// TestLongCollectingJVM: a thread that is held at a safepoint shows an untimed
// futex, as one at the connection latch does. The acceptor of a connector that
// is nowhere near its limit is never taken to be at the latch; one that is, is
// found there all the same. At its full size this takes hours.
func TestLongCollectingJVM(t *testing.T) {
	needServers(t)
	long := proof.Size(time.Hour, 5*time.Second)
	for _, java := range javas(t) {
		for _, collector := range []string{"-XX:+UseSerialGC", "-XX:+UseG1GC", "-XX:+UseZGC"} {
			if eight(java) && collector == "-XX:+UseZGC" {
				continue
			}
			t.Run(label(java)+" "+collector[5:], func(t *testing.T) {
				s := start(t, java, "9.0.117", nil, collector)
				s.collects(t)
				s.neverAtLatch(t, long)
				s.atLatchAllTheSame(t)
			})
		}
	}
}

func (s *server) neverAtLatch(t *testing.T, long time.Duration) {
	r := s.open(t, control)
	defer s.visits(t, control)()
	var track evidence.Track
	var past []evidence.Reading
	seen := map[evidence.Activity]int{}
	named := map[model.Cause]int{}
	for end := time.Now().Add(long); time.Now().Before(end); {
		cur := r.Read()
		seen[cur.Acceptor.Activity]++
		judgements := []evidence.Judgement{track.Judge(cur, evidence.Phases{}, causes.OfMoment)}
		for _, prev := range past {
			judgements = append(judgements, judged(evidence.Phases{}, prev, cur))
		}
		for _, j := range judgements {
			named[j.Cause]++
			require.NotEqual(t, model.CauseMaxConnections, j.Cause, "%+v\nof %+v\nafter %+v", j, cur, past)
		}
		if past = append(past, cur); len(past) > 40 {
			past = past[1:]
		}
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	}
	t.Logf("acceptor: %d readings in accept, %d parked, %d asleep for a time, %d runnable; judgements: %v",
		seen[evidence.Accepting], seen[evidence.Parked], seen[evidence.Sleeping], seen[evidence.Runnable], named)
	require.Positive(t, seen[evidence.Accepting])
}

func (s *server) atLatchAllTheSame(t *testing.T) {
	r := s.open(t, plain)
	s.connect(t, plain, maxConnections+acceptCount)
	require.Positive(t, s.queued(t, plain))
	var track evidence.Track
	named := map[model.Cause]int{}
	for range 30 {
		named[track.Judge(r.Read(), evidence.Phases{}, causes.OfMoment).Cause]++
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("at the latch, collecting: %v", named)
	require.Zero(t, named[model.CauseSlowAccept])
	require.Zero(t, named[model.CauseOpenFiles])
	s.ask(t, "op=stop")
	s.settles(t, plain, r, model.CauseMaxConnections, evidence.StrengthAcceptor)
}
