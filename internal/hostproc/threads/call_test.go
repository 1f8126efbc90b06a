package threads

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestParseCall(t *testing.T) {
	amd64, ok := callsOf("amd64")
	require.True(t, ok)
	arm64, ok := callsOf("arm64")
	require.True(t, ok)
	_, ok = callsOf("386")
	require.False(t, ok)
	for _, tt := range []struct {
		name    string
		numbers callNumbers
		line    string
		want    Call
	}{
		// Captured from Java 17 and 25 on Linux 6.18.
		{"parked", amd64, "202 0x7fb0ac3f4198 0x189 0x0 0x0 0x0 0xffffffff 0x7fb0848a5630 0x7fb0b274cf16\n", Call{Kind: CallFutex, Futex: 0x7fb0ac3f4198}},
		{"asleep", amd64, "202 0x7fb0ac403778 0x89 0x0 0x7fb0847a5770 0x0 0xffffffff 0x7fb0847a5660 0x7fb0b274cf16\n", Call{Kind: CallFutex, Timed: true, Futex: 0x7fb0ac403778}},
		{"accept", amd64, "43 0x4 0x7fb0846a5730 0x7fb0846a5728 0xc 0x0 0x69e49d298 0x7fb0846a56e0 0x7fb0b27d172f\n", Call{Kind: CallAccept, FD: 4}},
		{"running", amd64, "running\n", Call{Kind: CallRunning}},
		// Made up.
		{"barrier", amd64, "202 0x1000 0x80 0x2 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallFutex, Futex: 0x1000, Plain: true}},
		{"on the stack", amd64, "202 0x7fb0848a5830 0x189 0x0 0x0 0x0 0xffffffff 0x7fb0848a5630 0x1\n", Call{Kind: CallFutex, Futex: 0x7fb0848a5830, OnStack: true}},
		{"below the stack", amd64, "202 0x7fb0848a5000 0x189 0x0 0x0 0x0 0xffffffff 0x7fb0848a5630 0x1\n", Call{Kind: CallFutex, Futex: 0x7fb0848a5000}},
		{"waking", amd64, "202 0x1000 0x81 0x1 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallOther}},
		{"accept4", amd64, "288 0x3 0x0 0x0 0x80000 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallAccept, FD: 3}},
		{"poll", amd64, "7 0x1 0x1 0xffffffff 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallPoll, Polled: 1}},
		{"poll, timed", amd64, "7 0x1 0x1 0x7530 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallPoll, Timed: true, Polled: 1}},
		{"poll of two", amd64, "7 0x1 0x2 0x7530 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallPoll, Timed: true}},
		{"receive", amd64, "45 0x1f 0x7f00 0x2000 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallReceive, FD: 31}},
		{"read", amd64, "0 0x3 0x1 0x2 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallReceive, FD: 3}},
		{"connect", amd64, "42 0x20 0x7f00 0x10 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallConnect, FD: 32}},
		{"receive", arm64, "207 0x1f 0x7f00 0x2000 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallReceive, FD: 31}},
		{"connect", arm64, "203 0x20 0x7f00 0x10 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallConnect, FD: 32}},
		{"epoll", amd64, "232 0x9 0x1 0x400 0x3e8 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallEpoll, Timed: true}},
		{"sleep", amd64, "230 0x0 0x0 0x1 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallSleep, Timed: true}},
		{"outside of calls", amd64, "-1 0x7ff0 0x1\n", Call{Kind: CallOther}},
		{"open", amd64, "257 0xffffff9c 0x7f00 0x0 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallOpen}},
		{"write", amd64, "1 0x3 0x1 0x2 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallWrite, FD: 3}},
		{"open", arm64, "56 0xffffff9c 0x7f00 0x0 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallOpen}},
		{"another", amd64, "16 0x3 0x1 0x2 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallOther}},
		{"parked", arm64, "98 0x1000 0x189 0x0 0x0 0x0 0xffffffff 0x7ff0 0x1\n", Call{Kind: CallFutex, Futex: 0x1000}},
		{"accept", arm64, "202 0x4 0x0 0x0 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallAccept, FD: 4}},
		{"accept4", arm64, "242 0x4 0x0 0x0 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallAccept, FD: 4}},
		{"ppoll", arm64, "73 0x1 0x1 0x0 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallPoll, Polled: 1}},
		{"ppoll, timed", arm64, "73 0x1 0x1 0x7000 0x0 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallPoll, Timed: true, Polled: 1}},
		{"epoll", arm64, "22 0x9 0x1 0x400 0xffffffff 0x0 0x0 0x7ff0 0x1\n", Call{Kind: CallEpoll}},
	} {
		got, err := parseCall([]byte(tt.line), tt.numbers)
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
}

func TestParseCallRefuses(t *testing.T) {
	numbers, _ := callsOf("amd64")
	for _, line := range []string{
		"", "x", "202", "202 0x1", "202 1 2 3 4 5 6 7 8", "202 0x 0x1 0x1 0x1 0x1 0x1 0x1 0x1",
		"202 0x11111111111111111 0x1 0x1 0x1 0x1 0x1 0x1 0x1", "202 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1", "202 0xG 0x1 0x1 0x1 0x1 0x1 0x1 0x1",
	} {
		_, err := parseCall([]byte(line), numbers)
		require.ErrorIs(t, err, hostproc.ErrMalformed, "%q", line)
	}
}

func TestThreadParsers(t *testing.T) {
	var th Thread
	require.NoError(t, th.setStatus([]byte("Name:\tjava\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n")))
	require.NoError(t, th.setSchedstat([]byte("659977 4464630 3\n")))
	require.Equal(t, Thread{State: 'S', Switches: 150, CPUTime: 659977, RunDelay: 4464630, Ran: 3}, th)
	require.False(t, th.Dumping)
	require.NoError(t, th.setStatus([]byte("State:\tI (idle)\nCoreDumping:\t1\nvoluntary_ctxt_switches:\t150\n")))
	require.True(t, th.Dumping, "it has crashed, and waits for the core dump")
	for _, bad := range []string{"", "State:\t\n", "State:\tS (sleeping)\n", "State:\tS\nvoluntary_ctxt_switches:\tx\n"} {
		require.ErrorIs(t, th.setStatus([]byte(bad)), hostproc.ErrMalformed, "%q", bad)
	}
	for _, bad := range []string{"", "1 2", "1 x 3"} {
		require.ErrorIs(t, th.setSchedstat([]byte(bad)), hostproc.ErrMalformed, "%q", bad)
	}
}

// FuzzThreadFiles: nothing that a file may hold stops the parsers of a thread's
// syscall, schedstat and status.
func FuzzThreadFiles(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("202 0x7fb0ac3f4198 0x189 0x0 0x0 0x0 0xffffffff 0x7fb0848a5630 0x7fb0b274cf16\n"))
	m.Add([]byte("running\n"))
	m.Add([]byte("659977 4464630 3\n"))
	m.Add([]byte("State:\tS (sleeping)\nvoluntary_ctxt_switches:\t150\n"))
	m.Fuzz(func(t *testing.T, data []byte) {
		for _, arch := range []string{"amd64", "arm64"} {
			numbers, _ := callsOf(arch)
			call, err := parseCall(data, numbers)
			if err != nil && call != (Call{}) {
				t.Fatalf("%v with %v", call, err)
			}
		}
		var th Thread
		if th.setSchedstat(data) == nil && (th.CPUTime < 0 || th.RunDelay < 0) {
			t.Fatalf("%+v", th)
		}
		if th = (Thread{}); th.setStatus(data) == nil && th.State == 0 {
			t.Fatalf("%q has no state", data)
		}
	})
}
