package agentcmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// watchHangups hands out the SIGHUPs from now on. Nobody dies of one: to a
// daemon it says that its configuration is to be read again. But a program that
// was started in a terminal ends with it, as others do, or the agent that
// somebody only tried out would hold its port for ever; nohup prevents that,
// as it does for others.
func watchHangups(ctx context.Context) (within context.Context, hangups <-chan os.Signal, end func()) {
	bound := !signal.Ignored(syscall.SIGHUP) && hasTerminal()
	ctx, end = context.WithCancel(ctx)
	in, out := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(in, syscall.SIGHUP)
	go func() {
		defer signal.Stop(in)
		defer end()
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-in:
				if bound && !hasTerminal() {
					return
				}
				select {
				case out <- s:
				default: // one is waiting already
				}
			}
		}
	}()
	return ctx, out, end
}

// hasTerminal reports whether there is a controlling terminal. Opening it fails
// with ENXIO when there is none, and once it has hung up.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	return tty.Close() == nil
}
