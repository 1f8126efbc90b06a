package agentcmd

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/config"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// configured reads the configuration file, if there is one, and lets the flags
// that were given beat it.
func (o *agentOptions) configured(given func(flag string) bool) (schedule.Options, error) {
	file := &config.File{}
	if o.config != "" {
		var err error
		if file, err = config.Load(o.config); err != nil {
			return schedule.Options{}, err
		}
	}
	opt := schedule.Defaults()
	o.Options(&opt)
	opt.Labels = file.Labels
	opt.SampleInterval = pick(given("sample-interval"), o.sampleInterval, file.SampleInterval)
	opt.ScanInterval = pick(given("scan-interval"), o.scanInterval, file.ScanInterval)
	opt.MaxListeners = pick(given("max-listeners"), o.maxListeners, file.MaxListeners)
	opt.All = pick(given("all"), o.All, file.All)
	opt.AllNamespaces = pick(given("all-namespaces"), o.AllNetNS, file.AllNamespaces)
	opt.Limits = opt.Limits.Or(o.limitsOf(file.Limits))
	if !given("actuator") {
		opt.Actuator = file.Actuator
	}
	for _, t := range file.Targets {
		if t, ok := o.left(t); ok {
			opt.Targets = append(opt.Targets, t)
		}
	}
	return opt, nil
}

// left is what the flags leave of a target of the file.
func (o *agentOptions) left(t config.Target) (watchlist.Target, bool) {
	out := watchlist.Target{
		Ports: t.Ports, PID: t.PID, Labels: t.Labels, Actuator: t.Actuator,
		Limits: o.Limits.Overrides().Or(o.limitsOf(t.Limits)),
	}
	if len(o.Pids) > 0 {
		return out, false
	}
	if len(o.Ports) == 0 {
		return out, true
	}
	out.Ports = slices.DeleteFunc(slices.Clone(t.Ports), func(port uint16) bool { return !slices.Contains(o.Ports, port) })
	return out, len(out.Ports) > 0 && t.PID == 0
}

// limitsOf names the file and the line as the source of its limits.
func (o *agentOptions) limitsOf(l config.Limits) watchlist.Overrides {
	set := watchlist.Overrides{}
	if n := l.MaxConnections; n != nil {
		set.MaxConnections = watchlist.ByHand(&n.Value, o.lineOf(n))
	}
	if n := l.AcceptCount; n != nil {
		set.AcceptCount = watchlist.ByHand(&n.Value, o.lineOf(n))
	}
	if n := l.MaxThreads; n != nil {
		set.MaxThreads = watchlist.ByHand(&n.Value, o.lineOf(n))
	}
	return set
}

func (o *agentOptions) lineOf(n *config.Number) string {
	return fmt.Sprintf("%s line %d", filepath.Base(o.config), n.Line)
}

// pick is the flag's value where the flag was given, or the file says nothing.
func pick[T any](given bool, flag T, file *T) T {
	if given || file == nil {
		return flag
	}
	return *file
}

// check reads the file and does nothing else.
func (o *agentOptions) check(w io.Writer, given func(flag string) bool) error {
	if _, err := o.configured(given); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s is valid\n", o.config)
	return err
}

// reload reads the file again for a running sampler.
func (o *agentOptions) reload(ctx context.Context, s *schedule.Scheduler, given func(flag string) bool) error {
	opt, err := o.configured(given)
	if err != nil {
		return err
	}
	return s.Reconfigure(ctx, opt)
}
