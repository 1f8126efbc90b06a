package threaddump

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
)

// pidfdThread makes pidfd_open take a thread (PIDFD_THREAD, Linux 6.9).
const pidfdThread = unix.O_EXCL

// quit sends SIGQUIT, after it is known that the JVM handles it. The signal's action
// where it is not caught ends the process, so:
//
//   - The process catches it (SigCgt), which a JVM does once it has a Signal
//     Dispatcher, and with -Xrs never.
//   - The Service Thread exists, which HotSpot makes after both that and the
//     beginning of its attach mechanism (Threads::create_vm, JDK 8 to 25).
//   - It is sent to the VM Thread, the one that takes it. A process that has become
//     another program since it was looked at (execve) has the same id and start time,
//     and may not catch it; that thread went with the old program, and so does the
//     signal.
func (j *jvm) quit(ctx context.Context, settled time.Duration) error {
	t, err := j.ready(settled)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(t.vm, pidfdThread)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	}
	// Everything once more, now that the thread's id can be no other's.
	again, readyErr := j.ready(settled)
	switch {
	case readyErr != nil:
		return readyErr
	case again.vm != t.vm:
		return refuse("its threads have changed while they were looked at")
	case ctx.Err() != nil:
		return tooLate(false)
	}
	switch {
	case err == nil:
		err = unix.PidfdSendSignal(fd, unix.SIGQUIT, nil, 0)
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS): // before Linux 6.9
		err = unix.Tgkill(j.key.PID, t.vm, unix.SIGQUIT)
	}
	if err != nil {
		return refuse("it cannot be sent SIGQUIT, by which it would begin to listen: %v", err)
	}
	return nil
}

// ready refuses a JVM that does not handle SIGQUIT, not yet, or not now.
func (j *jvm) ready(settled time.Duration) (vmThreads, error) {
	p, err := j.same()
	if err != nil {
		return vmThreads{}, err
	}
	t, err := j.threads()
	if err != nil {
		return t, refuse("%v", err)
	}
	uptime, err := j.proc.Uptime()
	switch {
	case err != nil:
		return t, refuse("%v", err)
	case p.Age(uptime) < settled || t.vm == 0:
		return t, refuse("it is starting: a JVM that is asked too early may end").but("ask again in some seconds")
	}
	vm, err := threads.ReadSignals(j.proc, j.key.PID, t.vm)
	switch {
	case err != nil:
		return t, refuse("%v", err)
	case vm.Stopped():
		return t, refuse("it is stopped (SIGSTOP or a debugger)").but("let it go on: kill -CONT %d", j.key.PID)
	case vm.Name != "VM Thread" || !vm.Takes(int(unix.SIGQUIT)) || !t.dispatcher || !t.service:
		return t, refuse("it does not handle SIGQUIT, by which it would begin to listen, and would end (-Xrs, or it is starting)").
			but("start it with -XX:+StartAttachListener")
	}
	return t, nil
}

func tooLate(signalled bool) *Refusal {
	r := refuse("it did not answer in time: it stands still (a safepoint that lasts, a debugger, no CPU), or does not let itself be asked")
	r.Signalled = signalled
	return r
}
