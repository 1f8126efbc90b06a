package namespace

import (
	"errors"
	"maps"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// front counts what is lost in front of the listeners of a namespace: by its connection
// tracking and by the rules of its netfilter, and whom of its own clients a reset refuses. What may not be read, or is not there, is
// left out: no counter says then what loses clients there.
type front struct {
	conntrack *netstat.ConntrackFile
	filter    *netns.Filter
	asked     bool // conntrack has no file: filter is asked for it
	refused   refused
	shared    *Shared
}

// open is for the inside of the namespace.
func (f *front) open(proc hostproc.FS, shared *Shared) {
	f.shared = shared
	var err error
	if f.conntrack, err = netstat.OpenConntrack(proc, hostproc.CallingThread); err != nil {
		f.conntrack, f.asked = nil, true
	}
	if f.filter, err = netns.OpenFilter(); err != nil {
		f.filter = nil
	} else {
		f.shared.fronts.Add(1)
	}
	if !netns.PacketsReadable() {
		f.refused.open()
	}
}

func (f *front) read(out map[string]uint64) {
	f.refused.read(out, time.Now())
	if f.conntrack != nil && f.conntrack.Read(out) != nil {
		f.asked = true
	}
	if f.filter == nil {
		return
	}
	err := f.rules(out)
	if err == nil && f.asked {
		err = f.filter.Conntrack(out)
	}
	if err != nil { // it may not be asked, or the kernel has none
		_ = f.closeFilter()
	}
}

func (f *front) rules(out map[string]uint64) error {
	patience := time.Duration(f.shared.patience.Load())
	if patience <= 0 {
		return f.filter.Rules(out, int(f.shared.fronts.Load()))
	}
	begun := time.Now()
	defer func() { f.shared.patience.Add(-time.Since(begun).Nanoseconds()) }()
	return f.filter.RulesOnce(out, patience)
}

func (f *front) close() error {
	var errs []error
	if f.conntrack != nil {
		errs = append(errs, f.conntrack.Close())
	}
	if f.filter != nil {
		errs = append(errs, f.closeFilter())
	}
	errs = append(errs, f.refused.close())
	*f = front{}
	return errors.Join(errs...)
}

func (f *front) closeFilter() error {
	f.shared.fronts.Add(-1)
	filter := f.filter
	f.filter = nil
	return filter.Close()
}

// refused counts the clients of a namespace that a reset refuses at one of its own addresses, where their handshakes
// may not be followed. As long as somebody listens, the kernel makes a message for each socket that it frees; so
// nobody listens while no client fails (AttemptFails).
type refused struct {
	heard   *sockdiag.Refusals
	resting bool
	counts  map[string]uint64 // by model.RefusedPrefix and the address
	missed  uint64
	fails   uint64    // AttemptFails
	failed  time.Time // when it had moved
}

const (
	// mostRefusing is at how many addresses they are counted. A further one replaces the one with the fewest clients, so
	// that a scan of closed ports does not fill the list.
	mostRefusing = 64
	// refusedRest is how long after the last failure nobody listens any more.
	refusedRest = 10 * time.Second
)

func (r *refused) open() {
	if heard, err := sockdiag.ListenRefusals(); err == nil {
		*r = refused{heard: heard, counts: make(map[string]uint64)}
	}
}

func (r *refused) read(out map[string]uint64, now time.Time) {
	if r.heard == nil {
		return
	}
	missed, err := r.heard.Read(r.take)
	if fails := out["AttemptFails"]; fails != r.fails || r.failed.IsZero() {
		r.fails, r.failed = fails, now
	}
	if calm := now.Sub(r.failed) >= refusedRest; calm != r.resting {
		r.resting = calm
		if calm {
			err = errors.Join(err, r.heard.Rest())
		} else {
			missed, err = true, errors.Join(err, r.heard.Resume())
		}
	}
	if err != nil {
		_ = r.close() // from now on they are not counted
		return
	}
	if missed {
		r.missed++
	}
	maps.Copy(out, r.counts)
	out[model.RefusedMissed] = r.missed
}

// take counts one. Towards an address of this host the kernel takes the same address as the source.
func (r *refused) take(s *sockdiag.Socket) {
	to := s.RemoteAddress()
	if !to.Addr().IsLoopback() && to.Addr() != s.LocalAddress().Addr() {
		return
	}
	name := model.RefusedPrefix + to.String()
	if _, ok := r.counts[name]; !ok && len(r.counts) >= mostRefusing {
		fewest := ""
		for at, n := range r.counts {
			if fewest == "" || n < r.counts[fewest] {
				fewest = at
			}
		}
		delete(r.counts, fewest)
		r.missed++
	}
	r.counts[name]++
}

func (r *refused) close() error {
	heard := r.heard
	*r = refused{}
	if heard == nil {
		return nil
	}
	return heard.Close()
}
