package threads

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

func TestAcceptorRole(t *testing.T) {
	for _, tt := range []struct {
		comm string
		port uint16
		want role
	}{
		{"http-nio-8080-A", 8080, roleAcceptor},
		{"http-nio-8080-P", 8080, roleBeside},
		{"http-nio-8080-e", 8080, roleBeside},
		{"http-nio-8081-A", 8080, roleOther},
		{"http-nio-80-Acc", 80, roleAcceptor},
		{"http-nio-80-exe", 80, roleBeside},
		{"ajp-nio-8009-Ac", 8009, roleAcceptor},
		{"http-apr-8080-A", 8080, roleAcceptor},
		{"http-nio-18080-", 18080, roleOnPort},
		{"http-nio-18080-", 8080, roleOther},
		{"https-jsse-nio-", 8443, rolePossible},
		{"https-openssl-n", 8443, rolePossible},
		{"https-opensslff", 8443, rolePossible},
		{"http-nio-127.0.", 8080, rolePossible},
		{"http-nio-auto-1", 40123, rolePossible},
		{"http-nio2-8080-", 8080, roleNIO2},
		{"http-nio2-8080-", 8081, roleOther},
		{"http-nio2-18080", 18080, roleNIO2},
		{"https-jsse-nio2", 8443, rolePossible},
		{"http-client", 8080, roleNone},
		{"java", 8080, roleNone},
		{"", 0, roleNone},
	} {
		require.Equal(t, tt.want, acceptorRole(tt.comm, tt.port), "%s on %d", tt.comm, tt.port)
	}
}

func TestChooseAcceptor(t *testing.T) {
	thread := func(tid int, started uint64, r role, kind CallKind) candidate {
		return candidate{tid: tid, started: started, role: r, call: Call{Kind: kind}}
	}
	in := func(c candidate) candidate { c.ours = true; return c }
	for _, tt := range []struct {
		name string
		all  []candidate
		sure bool
		want int
		err  error
	}{
		{"by name", []candidate{thread(7, 2, roleAcceptor, CallFutex)}, false, 7, nil},
		{"AsyncTimeout comes after it", []candidate{thread(9, 2, roleAcceptor, CallFutex), thread(7, 2, roleAcceptor, CallFutex)}, false, 7, nil},
		{"in accept on the socket", []candidate{thread(5, 1, roleOnPort, CallEpoll), thread(6, 1, roleOnPort, CallFutex), in(thread(9, 4, roleOnPort, CallAccept))}, false, 9, nil},
		{"after the poller", []candidate{
			thread(3, 1, roleOnPort, CallFutex), thread(6, 1, roleOnPort, CallFutex), thread(5, 1, roleOnPort, CallEpoll), thread(12, 8, roleOnPort, CallFutex),
		}, false, 6, nil},
		{"thread ids started again at 1", []candidate{
			thread(32000, 1, roleOnPort, CallEpoll), thread(310, 2, roleOnPort, CallFutex), thread(300, 9, roleOnPort, CallFutex),
		}, false, 310, nil},
		{"after two pollers", []candidate{
			thread(5, 1, roleOnPort, CallEpoll), thread(6, 1, roleOnPort, CallEpoll), thread(7, 1, roleOnPort, CallFutex), thread(8, 1, roleOnPort, CallFutex),
		}, false, 7, nil},
		{"the poller is busy", []candidate{thread(5, 1, roleOnPort, CallRunning), thread(6, 1, roleOnPort, CallFutex)}, false, 0, ErrUnclear},
		{"nothing follows the poller", []candidate{thread(5, 1, roleOnPort, CallEpoll)}, false, 0, ErrUnclear},
		{"nothing follows the poller, and workers are there", []candidate{thread(3, 1, roleOnPort, CallFutex), thread(5, 1, roleOnPort, CallEpoll)}, false, 0, ErrEnded},
		{"TLS, it has ended", []candidate{thread(3, 1, rolePossible, CallFutex), thread(5, 1, rolePossible, CallEpoll)}, true, 0, ErrEnded},
		{"TLS, and another connector's is in accept", []candidate{
			thread(3, 1, rolePossible, CallFutex), thread(5, 1, rolePossible, CallEpoll), thread(6, 1, rolePossible, CallAccept),
		}, true, 0, ErrUnclear},
		{"another server's event loops", []candidate{
			thread(3, 1, rolePossible, CallFutex), thread(4, 1, rolePossible, CallEpoll), thread(5, 1, rolePossible, CallEpoll), thread(6, 1, rolePossible, CallEpoll),
		}, true, 0, ErrUnclear},
		{"two connectors with one cut name", []candidate{
			thread(5, 1, rolePossible, CallEpoll), thread(6, 1, rolePossible, CallFutex), thread(7, 1, rolePossible, CallEpoll), thread(8, 1, rolePossible, CallFutex),
		}, true, 0, ErrUnclear},
		{"TLS", []candidate{thread(5, 1, rolePossible, CallEpoll), thread(6, 1, rolePossible, CallFutex)}, true, 6, nil},
		{"TLS, or the port of something else", []candidate{thread(5, 1, rolePossible, CallEpoll), thread(6, 1, rolePossible, CallFutex)}, false, 0, ErrUnclear},
		{"accepting on another socket", []candidate{thread(5, 1, rolePossible, CallEpoll), thread(6, 1, rolePossible, CallAccept)}, true, 0, ErrUnclear},
		{"NIO2 beside TLS", []candidate{
			thread(3, 1, roleNIO2, CallFutex), thread(5, 1, rolePossible, CallEpoll), thread(6, 1, rolePossible, CallFutex),
		}, true, 0, ErrNoAcceptor},
		{"it has ended", []candidate{thread(3, 1, roleBeside, CallFutex), thread(5, 1, roleBeside, CallEpoll)}, false, 0, ErrEnded},
		{"another thread accepts", []candidate{thread(3, 1, roleBeside, CallFutex), in(thread(5, 1, roleNone, CallAccept))}, false, 5, nil},
		{"no connector", []candidate{thread(3, 1, roleNone, CallFutex), thread(4, 1, roleNone, CallEpoll)}, true, 0, ErrUnclear},
		{"not started yet", []candidate{thread(3, 1, roleNone, CallFutex), thread(4, 1, roleNone, CallSleep)}, false, 0, ErrEnded},
		{"another connector runs, and this one has not started", []candidate{
			thread(3, 1, roleOther, CallFutex), thread(4, 1, roleOther, CallEpoll), thread(5, 1, roleOther, CallAccept), thread(6, 1, roleNone, CallSleep),
		}, true, 0, ErrEnded},
		{"another connector runs, and something else waits for what comes", []candidate{
			thread(4, 1, roleOther, CallEpoll), thread(6, 1, roleNone, CallEpoll),
		}, true, 0, ErrUnclear},
		{"calls that could not be read", []candidate{thread(3, 1, roleNone, CallFutex), thread(4, 1, roleNone, CallUnknown)}, false, 0, ErrUnclear},
		{"another server", []candidate{thread(3, 1, roleNone, CallFutex), in(thread(4, 1, roleNone, CallAccept))}, false, 4, nil},
	} {
		tid, err := chooseAcceptor(tt.all, tt.sure)
		require.Equal(t, tt.want, tid, tt.name)
		require.ErrorIs(t, err, tt.err, tt.name)
	}
}

func TestParseStarted(t *testing.T) {
	got, err := parseStarted([]byte("42 (a) b) (c) S 1 42 42 0 -1 1077936384 98 0 0 0 0 0 0 0 20 0 27 0 67530 9 9 9\n"))
	require.NoError(t, err)
	require.EqualValues(t, 67530, got)
	for _, bad := range []string{"", "42 (a", "42 (a) S 1", "42 (a) S 1 42 42 0 -1 1 98 0 0 0 0 0 0 0 20 0 27 0 x 9"} {
		_, err := parseStarted([]byte(bad))
		require.ErrorIs(t, err, hostproc.ErrMalformed, "%q", bad)
	}
}
