// Package clients follows what becomes of the clients: it keeps a tap.Tap in each
// network namespace that the snapshots name, gives every client to the listener it meant,
// and puts the totals into the facts; what they say of a listener is in accounts.
package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/clients/accounts"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/tap"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Tap follows the handshakes of one namespace (tap.Tap).
type Tap interface {
	SetPorts(ports []uint16) error
	// SetListened says at which addresses of these something listens.
	SetListened(at []netip.AddrPort)
	// Alert has everything read that the tap can read, for some time.
	Alert()
	// Alone reports whether every port on which something listens in the namespace is
	// followed.
	Alone() bool
	Report() (tap.Report, error)
	Close() error
}

// Where is a namespace to tap.
type Where struct {
	NetNS         uint64
	PIDs          []int // processes that were in it
	Ports         []uint16
	Listened      []netip.AddrPort
	SynAckRetries int  // its net.ipv4.tcp_synack_retries, 0 if not known, -1 for none
	Many          bool // it is one of many: its ring is small while few packets come
	Calm          bool // see tap.Options
	Judged        func(outcome.Judged)
}

// Source has the snapshots that say which namespaces to tap (schedule.Scheduler).
type Source interface {
	// Snapshot is the latest, nil before the first.
	Snapshot() *model.Snapshot
	// Next is closed when there is another one.
	Next() <-chan struct{}
}

// Opener opens a Tap.
type Opener func(Where) (Tap, error)

// Follower keeps a tap in each namespace that the snapshots of a source name, and counts its
// clients.
type Follower struct {
	mode   Mode
	source Source
	open   Opener

	mu         sync.Mutex // of what follows; it is not held while the kernel is asked
	namespaces map[uint64]*namespace
	number     uint64 // of the latest namespace
	beyond     int    // namespaces for which there is no tap
}

const (
	// maxNamespaces bounds the taps; see admit. Up to roomyNamespaces of them have a large ring from the
	// start.
	maxNamespaces   = 64
	roomyNamespaces = 4
	// retryAfter is when a namespace that could not be tapped is tried again.
	retryAfter = time.Minute
)

// NewFollower follows the snapshots of source.
func NewFollower(mode Mode, source Source, open Opener) *Follower {
	return &Follower{mode: mode, source: source, open: open, namespaces: make(map[uint64]*namespace)}
}

// Run keeps the taps as the snapshots want them, until ctx is done. It fails in Mode On
// only.
func (f *Follower) Run(ctx context.Context) error {
	if f.mode == Off {
		<-ctx.Done()
		return nil
	}
	for {
		next := f.source.Next()
		if s := f.source.Snapshot(); s != nil {
			if err := f.Tend(s); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// Read has the taps report what they have seen by now, for the next Count. The lock is not held while
// they ask the kernel.
func (f *Follower) Read() {
	for _, p := range f.unread() {
		report, err := p.tap.Report()
		alone := err == nil && p.tap.Alone()
		f.mu.Lock()
		if err != nil {
			p.err = err
		} else {
			p.report = &reported{report, alone}
		}
		f.mu.Unlock()
	}
}

// unread are the namespaces whose taps may report: what the latest report of each said is counted.
func (f *Follower) unread() (out []*namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.namespaces {
		if p.tap != nil && p.report == nil {
			out = append(out, p)
		}
	}
	return out
}

// Count adds up what the taps have reported, from memory, and puts what is known of the clients
// into the facts.
func (f *Follower) Count(v *facts.View) {
	if f.mode == Off {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v.Clients = &accounts.Clients{Namespaces: make(map[uint64]*accounts.Namespace, len(f.namespaces)), Unavailable: f.unavailable()}
	for id, p := range f.namespaces {
		p.count(v)
		v.Clients.Namespaces[id] = p.facts(v)
	}
}

// unavailable says once why handshakes are not followed somewhere.
func (f *Follower) unavailable() (out []model.Unavailable) {
	for _, id := range f.sortedNamespaces() {
		if err := f.namespaces[id].err; err != nil {
			u := model.Unavailable{What: "clients by outcome: handshakes", Why: err.Error()}
			switch {
			case errors.Is(err, syscall.EAFNOSUPPORT):
				u.Why, u.How = "packet sockets are not allowed (AF_PACKET)", "allow AF_PACKET (RestrictAddressFamilies= of a systemd unit, or its seccomp filter) and grant CAP_NET_RAW; --handshakes=off leaves this line out"
			case errors.Is(err, fs.ErrPermission):
				u.Why, u.How = "packets cannot be read without CAP_NET_RAW", "grant CAP_NET_RAW to count clients beside packets; --handshakes=off leaves this line out"
			}
			if len(f.namespaces) > 1 {
				u.What += fmt.Sprintf(" of network namespace %d", id)
			}
			if !slices.ContainsFunc(out, func(o model.Unavailable) bool { return o.Why == u.Why }) {
				out = append(out, u)
			}
		}
	}
	if f.beyond > 0 {
		out = append(out, model.Unavailable{
			What: "clients by outcome: handshakes of " + phrase.Count(f.beyond, "network namespace"),
			Why:  phrase.Sprintf("handshakes are followed in at most %d network namespaces", maxNamespaces),
			How:  "watch fewer namespaces with one agent",
		})
	}
	return out
}

func (f *Follower) sortedNamespaces() []uint64 {
	ids := make([]uint64, 0, len(f.namespaces))
	for id := range f.namespaces {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Tend opens and closes taps, and has those read all that is needed where clients may be
// turned away. The lock is not held while the kernel is asked.
func (f *Follower) Tend(s *model.Snapshot) error {
	if f.mode == Off {
		return nil
	}
	wanted := f.admit(wantedOf(s), s)
	for _, p := range f.unwanted(wanted) {
		p.close()
	}
	for _, w := range wanted {
		p := f.namespace(w.NetNS)
		if p.due(s.Time) {
			tap, err := f.open(w)
			f.mu.Lock()
			p.opened, p.err = s.Time, err
			if err == nil {
				p.tap = tap
			}
			f.mu.Unlock()
		}
		if p.tap == nil {
			if f.mode == On {
				return fmt.Errorf("%w: %w", ErrUnavailable, p.err)
			}
			continue
		}
		err := p.tap.SetPorts(w.Ports)
		p.tap.SetListened(w.Listened)
		f.mu.Lock()
		p.err = err
		f.mu.Unlock()
		if err != nil && f.mode == On {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if slices.ContainsFunc(s.Listeners, func(l model.Listener) bool { return l.ID.NetNS == w.NetNS && uneasy(&l) }) {
			p.tap.Alert()
		}
	}
	return nil
}

// namespace is that of a namespace, a new one where there is none.
func (f *Follower) namespace(netns uint64) *namespace {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.namespaces[netns]
	if p == nil {
		f.number++
		p = newNamespace(netns, f.number)
		f.namespaces[netns] = p
	}
	return p
}

// due reports whether a tap is to be opened, and takes note of it.
func (p *namespace) due(now time.Time) bool {
	if p.tap != nil || !p.tried.IsZero() && now.Sub(p.tried) < retryAfter {
		return false
	}
	p.tried = now
	return true
}

// unwanted takes out the namespaces that are not wanted any more.
func (f *Follower) unwanted(wanted []Where) (out []*namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, p := range f.namespaces {
		if !slices.ContainsFunc(wanted, func(w Where) bool { return w.NetNS == id }) {
			out = append(out, p)
			delete(f.namespaces, id)
		}
	}
	return out
}

// Close closes all taps.
func (f *Follower) Close() error {
	for _, p := range f.unwanted(nil) {
		p.close()
	}
	return nil
}

// wantedOf lists the namespaces of a snapshot with the ports that are watched or
// expected there. One that does not answer has neither, and its tap stays for the listeners whose totals are kept.
func wantedOf(s *model.Snapshot) []Where {
	byID := make(map[uint64]*Where)
	at := func(netns uint64) *Where {
		if byID[netns] == nil {
			byID[netns] = &Where{NetNS: netns}
		}
		return byID[netns]
	}
	for i := range s.Listeners {
		l := &s.Listeners[i]
		w := at(l.ID.NetNS)
		w.Ports = append(w.Ports, l.Port)
		if l.Listening() {
			w.Listened = append(w.Listened, l.ID.Address)
		}
		if l.Process != nil && !slices.Contains(w.PIDs, l.Process.PID) {
			w.PIDs = append(w.PIDs, l.Process.PID)
		}
	}
	for _, t := range s.Targets {
		w := at(t.NetNS)
		w.Ports = append(w.Ports, t.Port)
	}
	listed := maps.Clone(byID)
	for i := range s.Retired {
		id := s.Retired[i].ID
		there := func(n model.NetNS) bool { return n.ID == id.NetNS }
		if listed[id.NetNS] == nil && slices.ContainsFunc(s.NetNS, there) {
			w := at(id.NetNS)
			w.Ports = append(w.Ports, id.Address.Port())
		}
	}
	for i := range s.NetNS {
		if w := byID[s.NetNS[i].ID]; w != nil {
			w.SynAckRetries = synAckRetries(&s.NetNS[i])
			if pid := s.NetNS[i].PID; pid != 0 && !slices.Contains(w.PIDs, pid) { // where no listener's process may be read
				w.PIDs = append(w.PIDs, pid)
			}
		}
	}
	out := make([]Where, 0, len(byID))
	for _, w := range byID {
		w.Many = len(byID) > roomyNamespaces
		slices.Sort(w.Ports)
		w.Ports = slices.Compact(w.Ports)
		slices.SortFunc(w.Listened, netip.AddrPort.Compare)
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Where) int { return cmp.Compare(a.NetNS, b.NetNS) })
	return out
}

func synAckRetries(n *model.NetNS) int {
	if retries, known := n.Sysctl["tcp_synack_retries"]; !known || retries > 0 {
		return retries
	}
	return -1
}

// Mode says whether handshakes are followed; it is a flag's value.
type Mode string

// The modes.
const (
	Auto Mode = "auto" // where CAP_NET_RAW allows; elsewhere the snapshot says what is missing
	On   Mode = "on"   // it is an error where they cannot be
	Off  Mode = "off"
)

// ErrUnavailable is why a Follower with Mode On ends.
var ErrUnavailable = errors.New("handshakes cannot be followed")

// Type implements pflag.Value.
func (m *Mode) Type() string { return "mode" }

// String implements pflag.Value.
func (m *Mode) String() string { return string(*m) }

// Set implements pflag.Value.
func (m *Mode) Set(s string) error {
	switch Mode(s) {
	case Auto, On, Off:
		*m = Mode(s)
		return nil
	}
	return fmt.Errorf("give auto, on or off")
}
