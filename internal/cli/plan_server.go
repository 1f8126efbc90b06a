package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
)

// fromServer fills in what the running server on --port and its kernel
// have in force. A flag that was given beats it. What was taken, and what could
// not be found out and keeps its default, is written to log.
func (o *planOptions) fromServer(ctx context.Context, flags *pflag.FlagSet, log io.Writer) error {
	if len(o.fromPort) == 0 {
		return nil
	}
	if len(o.fromPort) > 1 {
		return command.Usagef("--port %s: a plan is for one server", o.fromPort.String())
	}
	opt := schedule.Defaults()
	opt.Ports = o.fromPort
	s, err := command.NewScheduler(opt)
	if err != nil {
		return err
	}
	left, err := command.Interruptible(ctx, func(ctx context.Context) error { return s.Observe(ctx, 0) })
	if !left {
		defer s.Close()
	}
	if err != nil {
		return err
	}
	snap := s.Snapshot()
	l := &snap.Listeners[0]
	if !l.Listening() {
		return fmt.Errorf("--port %d: nothing listens there", l.Port)
	}
	t := taken{flags: flags, log: log, port: l.Port}
	t.limits(o, l)
	t.sysctls(o, snap.NetNS[0].Sysctl)
	return nil
}

// taken sets inputs that no flag was given for.
type taken struct {
	flags *pflag.FlagSet
	log   io.Writer
	port  uint16
}

func (t taken) limits(o *planOptions, l *model.Listener) {
	var c model.Connector
	if l.Connector != nil {
		c = *l.Connector
	}
	t.set("max-connections", &o.input.MaxConnections, c.MaxConnections)
	t.set("accept-count", &o.input.AcceptCount, &model.Setting[int]{
		Value: l.AcceptQueue.Limit, Source: "in force, the listener's Send-Q",
	})
	// Cut already when the server began to listen. With --somaxconn the question
	// is what another one would make of it.
	o.input.InForce = !t.flags.Changed("accept-count") && !t.flags.Changed("somaxconn")
	if c.VirtualThreads != nil && c.VirtualThreads.Value {
		c.MaxThreads = &model.Setting[int]{Value: -1, Source: "no limit: virtual threads"}
	}
	t.set("max-threads", &o.input.Threads, c.MaxThreads)
}

func (t taken) set(flag string, dst *int, s *model.Setting[int]) {
	switch {
	case t.flags.Changed(flag):
	case s == nil:
		fmt.Fprintf(t.log, "port %d: %s is not known, %d is assumed; give --%s\n", t.port, flag, *dst, flag)
	default:
		*dst = s.Value
		fmt.Fprintf(t.log, "port %d: %s %d (%s)\n", t.port, flag, s.Value, s.Source)
	}
}

func (t taken) sysctls(o *planOptions, values map[string]int) {
	number := func(flag, name string, dst *int) {
		if v, ok := values[name]; ok && !t.flags.Changed(flag) {
			*dst = v
		}
	}
	number("somaxconn", "somaxconn", &o.input.Somaxconn)
	if _, ok := values["somaxconn"]; !ok && !t.flags.Changed("somaxconn") {
		fmt.Fprintf(t.log, "port %d: net.core.somaxconn is not known, %d is assumed; give --somaxconn\n", t.port, o.input.Somaxconn)
	}
	number("max-syn-backlog", "tcp_max_syn_backlog", &o.input.MaxSynBacklog)
	if v, ok := values["tcp_syncookies"]; ok && !t.flags.Changed("syncookies") {
		o.input.Syncookies = v != 0
	}
	if v, ok := values["tcp_abort_on_overflow"]; ok && !t.flags.Changed("abort-on-overflow") {
		o.input.AbortOnOverflow = v != 0
	}
}
