package observer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// change is a request to the scan loop.
type change struct {
	opt  Options
	done chan error
}

// Reconfigure makes a running sampler go on with other targets, limits, labels
// and intervals; Inside, Window, Thresholds, Log and Now stay. Listeners that
// are still named keep their counters, the totals of the others are retained as
// those of listeners that vanished. It returns when the change is in force, and
// the next scan, which it brings forward, shows it. With an error nothing has
// changed. It waits for the first scan, and for one that is under way.
func (s *Sampler) Reconfigure(ctx context.Context, opt Options) error {
	c := change{opt: opt, done: make(chan error, 1)}
	select {
	case s.changes <- c:
	case <-ctx.Done():
		return fmt.Errorf("reconfigure: a scan is under way: %w", ctx.Err())
	}
	if err := <-c.done; err != nil {
		return fmt.Errorf("reconfigure: %w", err)
	}
	return nil
}

// reconfigure is the scan loop's, between two scans.
func (s *Sampler) reconfigure(opt Options) error {
	next := s.opt
	next.Ports, next.PIDs, next.All, next.Targets = opt.Ports, opt.PIDs, opt.All, opt.Targets
	next.AllNamespaces = opt.AllNamespaces
	next.Labels, next.Limits, next.Actuator = opt.Labels, opt.Limits, opt.Actuator
	next.SampleInterval, next.ScanInterval, next.MaxListeners = opt.SampleInterval, opt.ScanInterval, opt.MaxListeners
	if next.SampleInterval <= 0 {
		return fmt.Errorf("sample interval %v: must be positive", next.SampleInterval)
	}
	if err := s.openSpaces(next); err != nil {
		return err
	}
	s.wake()
	if s.metronome != nil { // else it is sampled by hand
		_ = s.metronome.Set(next.SampleInterval) // or all is just being stopped
	}
	return nil
}

// openSpaces makes the options the sampler's: it opens the namespaces they name
// beside those that are open already, and closes those that nothing names any
// more. When one cannot be opened, all stays as it was.
func (s *Sampler) openSpaces(opt Options) error {
	o := opening{s: s, homes: make(map[int]*space), general: make(map[*space]bool)}
	chosen := newSelection(&opt)
	inside := opt.Inside
	if len(inside) == 0 && chosen.general() {
		inside = []int{0}
	}
	for _, pid := range inside {
		if err := o.open(pid, true); err != nil {
			return errors.Join(err, o.undo())
		}
	}
	for _, pid := range chosen.pids() {
		if err := o.open(pid, false); err != nil {
			return errors.Join(err, o.undo())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	former := s.spaces
	s.opt, s.chosen, s.spaces, s.homes = opt, chosen, o.spaces, o.homes
	s.lastTick = time.Time{} // the time since then is measured in another interval
	for _, sp := range s.spaces {
		sp.discovered = false
		s.equip(sp, o.general[sp] || opt.AllNamespaces)
	}
	for _, sp := range former {
		switch {
		case slices.Contains(s.spaces, sp):
		case opt.AllNamespaces:
			sp.discovered = true
			s.equip(sp, true)
			s.spaces = append(s.spaces, sp)
		default:
			s.abandon(sp, opt.Now())
		}
	}
	for _, sp := range o.fresh {
		s.orphans = sp.adopt(s.orphans)
	}
	if s.src.Tomcat != nil {
		s.src.Tomcat.SetActuators(actuators(&opt))
	}
	return nil
}

// equip gives a namespace what the options say.
func (s *Sampler) equip(sp *space, general bool) {
	sp.window, sp.thresholds, sp.general, sp.expects = s.opt.Window, s.opt.Thresholds, general, unexpected
	if general {
		sp.expects = s.chosen.expects
	}
	maps.DeleteFunc(sp.served, func(port uint16, _ bool) bool {
		return !slices.ContainsFunc(s.chosen.selectors, func(sel selector) bool { return sel.port == port })
	})
}

func unexpected(model.ListenerID) bool { return false }

// opening gathers namespaces.
type opening struct {
	s       *Sampler
	spaces  []*space
	fresh   []*space
	homes   map[int]*space
	general map[*space]bool
}

// open finds or opens the namespace of a process, 0 for the caller's own.
func (o *opening) open(pid int, general bool) error {
	if pid != 0 {
		if _, err := o.s.src.Proc.Process(pid); err != nil {
			return fmt.Errorf("pid %d: %w", pid, err)
		}
	}
	sp, err := openSpace(o.s.src, &o.s.common, pid)
	if err != nil {
		return err
	}
	if err := sp.waken(o.s.src); err != nil {
		return errors.Join(err, sp.close())
	}
	same := func(other *space) bool { return other.id == sp.id }
	if i := slices.IndexFunc(o.spaces, same); i >= 0 {
		err, sp = sp.close(), o.spaces[i]
	} else if i := slices.IndexFunc(o.s.spaces, same); i >= 0 {
		err, sp = sp.close(), o.s.spaces[i]
		o.spaces = append(o.spaces, sp)
	} else {
		o.spaces, o.fresh = append(o.spaces, sp), append(o.fresh, sp)
	}
	o.general[sp] = o.general[sp] || general
	if !general {
		o.homes[pid] = sp
	}
	return err
}

// undo closes what was opened.
func (o *opening) undo() error {
	var errs []error
	for _, sp := range o.fresh {
		errs = append(errs, sp.close())
	}
	return errors.Join(errs...)
}

// actuators are whom to ask, the targets' own behind the one for all. That one
// is asked for its own port's process and for those of the ports that were
// asked for: it may answer on a port that nobody watches.
func actuators(o *Options) (out []discovery.Actuator) {
	if o.Actuator != "" {
		out = append(out, discovery.Actuator{URL: o.Actuator})
		for _, port := range o.Ports {
			out = append(out, discovery.Actuator{URL: o.Actuator, Port: port})
		}
	}
	for _, t := range o.Targets {
		if t.Actuator == "" {
			continue
		}
		ports := t.Ports
		if len(ports) == 0 {
			ports = []uint16{0}
		}
		for _, port := range ports {
			out = append(out, discovery.Actuator{URL: t.Actuator, Port: port, PID: t.PID})
		}
	}
	return out
}
