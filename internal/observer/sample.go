package observer

import (
	"errors"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Exact requests in one send (0.5 µs, and 0.9 µs for each watched listener) are
// cheaper than a LISTEN dump (13 µs, and 0.2 µs for every listener of the
// namespace) up to exactLimit of them and one more for every dumpShare that are
// there.
const (
	exactLimit = 13
	dumpShare  = 5
)

// maxGap is how many sample intervals of a gap may count as full.
const maxGap = 5

// Sample looks once at every watched accept queue. It allocates nothing, writes
// no log line, and takes no lock that a reader of Snapshot could hold.
func (s *Sampler) Sample() {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := s.opt.Now()
	s.countMissed(start)
	disturbed := false
	for _, sp := range s.spaces {
		disturbed = sp.sample(start, maxGap*s.opt.SampleInterval) || disturbed
	}
	s.self.SampleSeconds.Observe(s.opt.Now().Sub(start))
	if disturbed {
		s.wake()
	}
}

// countMissed counts the ticks that should have happened since the last one.
func (s *Sampler) countMissed(now time.Time) {
	if !s.lastTick.IsZero() && s.opt.SampleInterval > 0 {
		gap := now.Sub(s.lastTick)
		if missed := (gap+s.opt.SampleInterval/2)/s.opt.SampleInterval - 1; missed > 0 {
			s.self.MissedTicks += uint64(missed)
		}
	}
	s.lastTick = now
}

// wake brings the next scan forward: something happened whose cause only the
// other stages show.
func (s *Sampler) wake() {
	select {
	case s.early <- struct{}{}:
	default:
	}
}

// sample asks for every watched listener, and splits the namespace's drops when
// a listener's own counter moved. It reports whether a scan should come early.
func (sp *space) sample(now time.Time, gapLimit time.Duration) (disturbed bool) {
	sp.unsee()
	sp.moved, sp.lost, sp.shadowed = false, false, false
	if sp.exact() {
		sp.askEach()
	} else {
		sp.lost = true
	}
	if sp.lost && sp.askAll() == nil {
		disturbed = sp.miss(now)
	}
	for i := range sp.watches {
		if w := &sp.watches[i]; w.anySeen() { // else the kernel did not answer: no sample
			w.sampled(now, gapLimit)
		}
	}
	if sp.moved {
		sp.splitDrops()
	}
	return sp.moved || sp.shadowed || disturbed
}

// exact says that one request per listener will do: few listeners, and none
// that shares its address, for which the kernel would pick a member by hash.
func (sp *space) exact() bool {
	if len(sp.watches) > exactLimit+len(sp.sockets)/dumpShare {
		return false
	}
	for i := range sp.watches {
		if m := sp.watches[i].members; len(m) != 1 || m[0].shadowed {
			return false
		}
	}
	return true
}

// askEach needs every watch to have one member.
func (sp *space) askEach() {
	sp.asks, sp.asked = sp.asks[:0], sp.asked[:0]
	for i := range sp.watches {
		if w := &sp.watches[i]; !w.gone() {
			sp.asks = append(sp.asks, sockdiag.Ask{ID: w.members[0].ask, Inode: w.members[0].inode})
			sp.asked = append(sp.asked, i)
		}
	}
	_ = sp.fast.LookupEach(sp.asks, sp.answer) // whoever was not answered has no sample
}

// answered is askEach's callback. When nobody answers, or another socket does,
// the listener may have closed; or one has joined its address since the latest
// scan (SO_REUSEPORT), or a program redirects the lookup (BPF_SK_LOOKUP). Only a
// dump can tell, and it is asked until the next scan.
func (sp *space) answered(i int, l *sockdiag.Listener, err error) {
	m := &sp.watches[sp.asked[i]].members[0]
	switch {
	case err == nil:
		sp.moved = m.observe(l) || sp.moved
	case errors.Is(err, sockdiag.ErrNotFound):
		m.shadowed, sp.lost = true, true
		sp.shadowed = sp.shadowed || !m.suspect
	}
}

// splitDrops reads the namespace's counters, then every listener's, and
// attributes what the namespace dropped since the last time. In that order: a
// drop between the two reads is then seen by the socket first and carried.
func (sp *space) splitDrops() {
	var c hostproc.ListenCounters
	if torn, err := sp.readDrops(&c, func() error { return sp.drops.Read(&c) }); err == nil {
		sp.attribute(counts(c, torn))
	}
}

// wholeTries bounds how often the counters are read again.
const wholeTries = 3

// readDrops reads the namespace's counters by read, which fills in c, and then
// every listener's, again if something was dropped meanwhile: a drop that the
// sockets have and the namespace has not looks like a final ACK.
func (sp *space) readDrops(c *hostproc.ListenCounters, read func() error) (torn bool, err error) {
	for range wholeTries {
		if err := errors.Join(read(), sp.collect()); err != nil {
			return false, err
		}
		var after hostproc.ListenCounters
		if err := sp.drops.Read(&after); err != nil {
			return false, err
		}
		if after.ListenDrops == c.ListenDrops {
			return false, nil
		}
	}
	return true, nil
}

func counts(c hostproc.ListenCounters, torn bool) losses.NamespaceCounts {
	return losses.NamespaceCounts{
		ListenDrops: c.ListenDrops, ListenOverflows: c.ListenOverflows,
		ReqQFullDrop: c.ReqQFullDrop, ReqQFullDoCookies: c.ReqQFullDoCookies,
		SyncookiesRecv: c.SyncookiesRecv, Torn: torn,
	}
}

// attribute books the drops on the accounts, where they wait for their cause.
func (sp *space) attribute(c losses.NamespaceCounts) {
	if sp.attribution == nil {
		sp.attribution = losses.NewAttribution(c, sp.sockets)
		return
	}
	var rest uint64
	sp.attributed, rest = sp.attribution.Tick(c, sp.sockets, sp.attributed[:0])
	sp.unattributed += rest
	for _, d := range sp.attributed {
		sp.account(d.ID).pend(d)
	}
}

// watching tells whether a listener's drops are its account's: it is watched,
// or it is the same address under a new inode, or it is sure to be watched at
// the next scan.
func (sp *space) watching(inode uint32, id model.ListenerID) bool {
	if _, ok := sp.byInode[inode]; ok {
		return true
	}
	if a, known := sp.accounts[id]; known {
		return !a.dismissed
	}
	return sp.expects(id)
}

// account finds or opens the account of a listening address.
func (sp *space) account(id model.ListenerID) *account {
	a, ok := sp.accounts[id]
	if !ok {
		a = newAccount(id, sp.window)
		sp.accounts[id] = a
	}
	return a
}
