package sockdiag

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// The scripted tests put a socket pair in the kernel's place, to have replies
// that it hardly ever gives.

type script struct {
	t      *testing.T
	kernel int // far end
	conn   *Conn
}

const scriptPortID = 4711

func newScript(t *testing.T) *script {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	sock := transport{fd: fds[0], patience: 50 * time.Millisecond, atOnce: true}
	s := &script{t: t, kernel: fds[1], conn: newConn(sock, scriptPortID, new(Buffer))}
	t.Cleanup(func() { _ = syscall.Close(s.kernel); _ = s.conn.Close() })
	return s
}

// reply queues a datagram of messages to the request number seq.
func (s *script) reply(messages ...[]byte) {
	s.t.Helper()
	var all []byte
	for _, m := range messages {
		all = append(all, m...)
	}
	_, err := syscall.Write(s.kernel, all)
	require.NoError(s.t, err)
}

func rawMessage(typ, flags uint16, seq uint32, body []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(nlmsgHeaderLen+len(body)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = binary.NativeEndian.AppendUint32(b, scriptPortID)
	b = append(b, body...)
	return append(b, make([]byte, align4(len(b))-len(b))...)
}

func errorMessage(seq uint32, errno syscall.Errno) []byte {
	return rawMessage(nlmsgError, 0, seq, int32Bytes(-int32(errno)))
}

func doneMessage(seq uint32, errno syscall.Errno) []byte {
	return rawMessage(nlmsgDone, 2, seq, int32Bytes(-int32(errno)))
}

func TestScripts(t *testing.T) {
	listener := listenerBody("127.0.0.1:80", 10)
	other := listenerBody("127.0.0.1:81", 11)
	list := func(seq uint32, flags uint16) []byte { return rawMessage(tcpDiagGetSock, 2|flags, seq, listener) }
	for _, test := range []struct {
		name    string
		replies func(s *script)
		restart bool
		want    error
		calls   int
	}{
		{"one listener", func(s *script) { s.reply(list(1, 0), doneMessage(1, 0)) }, false, nil, 1},
		{"done in a datagram of its own", func(s *script) { s.reply(list(1, 0)); s.reply(doneMessage(1, 0)) }, false, nil, 1},
		{"done without a number", func(s *script) { s.reply(rawMessage(nlmsgDone, 2, 1, nil)) }, false, nil, 0},
		{"replies to another request", func(s *script) {
			s.reply(list(77, 0), doneMessage(77, 0))
			s.reply(list(1, 0), doneMessage(1, 0))
		}, false, nil, 1},
		{"replies to another socket", func(s *script) {
			foreign := list(1, 0)
			foreign[12]++
			s.reply(foreign, doneMessage(1, 0))
		}, false, nil, 0},
		{"another kind of message", func(s *script) { s.reply(rawMessage(99, 0, 1, listener), doneMessage(1, 0)) }, false, nil, 0},
		{"socket in another state", func(s *script) {
			established := append([]byte{}, listener...)
			established[1] = byte(Established)
			s.reply(rawMessage(tcpDiagGetSock, 2, 1, established), doneMessage(1, 0))
		}, false, nil, 0},
		{"denied", func(s *script) { s.reply(errorMessage(1, syscall.EPERM)) }, false, os.ErrPermission, 0},
		{"no module", func(s *script) { s.reply(errorMessage(1, syscall.ENOENT)) }, false, ErrNoModule, 0},
		{"no module, told at the end", func(s *script) { s.reply(doneMessage(1, syscall.ENOENT)) }, false, ErrNoModule, 0},
		{"no inet_diag", func(s *script) { s.reply(errorMessage(1, syscall.EOPNOTSUPP)) }, false, ErrNoModule, 0},
		{"no memory, told at the end", func(s *script) { s.reply(list(1, 0), doneMessage(1, syscall.ENOMEM)) }, false, syscall.ENOMEM, 1},
		{"silence", func(*script) {}, false, ErrTimeout, 0},
		{"overrun", func(s *script) { s.reply(rawMessage(nlmsgOverrun, 0, 1, nil)) }, false, ErrTruncated, 0},
		{"message longer than the datagram", func(s *script) {
			m := list(1, 0)
			s.reply(m[:len(m)-4])
		}, false, ErrTruncated, 0},
		{"datagram fills the buffer", func(s *script) { s.reply(make([]byte, bufferLen)) }, false, ErrTruncated, 0},
		{"error without a number", func(s *script) { s.reply(rawMessage(nlmsgError, 0, 1, nil)) }, false, ErrMalformed, 0},
		{"body too short", func(s *script) {
			s.reply(rawMessage(tcpDiagGetSock, 2, 1, listener[:diagMsgLen-1]), doneMessage(1, 0))
		}, false, ErrMalformed, 0},
		{"interrupted, nobody to start over", func(s *script) { s.reply(list(1, flagDumpIntr), doneMessage(1, 0)) }, false, ErrInterrupted, 1},
		{"interrupted once", func(s *script) {
			s.reply(list(1, 0), rawMessage(nlmsgDone, flagDumpIntr, 1, nil))
			s.reply(list(2, 0), doneMessage(2, 0))
		}, true, nil, 1},
		{"interrupted every time", func(s *script) {
			for seq := range uint32(maxRestarts + 1) {
				s.reply(list(seq+1, flagDumpIntr), doneMessage(seq+1, 0))
			}
		}, true, ErrInterrupted, 1},
		{"an abandoned dump is still running", func(s *script) {
			s.reply(list(77, 0), errorMessage(1, syscall.EBUSY))
			s.reply(list(77, 0))
			s.reply(doneMessage(77, 0))
			s.reply(list(2, 0), doneMessage(2, 0))
		}, false, nil, 1},
		{"busy and silent", func(s *script) { s.reply(errorMessage(1, syscall.EBUSY)) }, false, ErrTimeout, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t)
			test.replies(s)
			calls := 0
			if test.restart {
				s.conn.OnRestart = func() { calls = 0 }
			}
			err := s.conn.Listeners(func(l *Listener) error {
				calls++
				require.EqualValues(t, 10, l.Inode)
				return nil
			})
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.calls, calls)
		})
	}

	id := ListenerID{Family: FamilyIPv4, Local: netip.MustParseAddrPort("127.0.0.1:80")}
	exact := func(seq uint32, body []byte) []byte { return rawMessage(sockDiagByFamily, 0, seq, body) }
	for _, test := range []struct {
		name    string
		replies func(s *script)
		want    error
	}{
		{"found", func(s *script) { s.reply(exact(1, listener)) }, nil},
		{"late reply of an earlier request", func(s *script) { s.reply(exact(77, other)); s.reply(exact(1, listener)) }, nil},
		{"end of an abandoned dump", func(s *script) { s.reply(list(77, 0), doneMessage(77, 0)); s.reply(exact(1, listener)) }, nil},
		{"another answers", func(s *script) { s.reply(exact(1, other)) }, ErrNotFound},
		{"vanished", func(s *script) {
			s.reply(errorMessage(1, syscall.ENOENT))
			s.reply(doneMessage(2, 0)) // the walk that proves the module
		}, ErrNotFound},
		{"no module", func(s *script) {
			s.reply(errorMessage(1, syscall.ENOENT))
			s.reply(doneMessage(2, syscall.ENOENT))
		}, ErrNotSupported},
		{"denied", func(s *script) { s.reply(errorMessage(1, syscall.EPERM)) }, os.ErrPermission},
		{"acknowledged instead", func(s *script) { s.reply(errorMessage(1, 0)) }, ErrMalformed},
		{"short", func(s *script) { s.reply(exact(1, listener[:20])) }, ErrMalformed},
		{"attribute beyond the end", func(s *script) { s.reply(exact(1, append(listener[:diagMsgLen:diagMsgLen], 40, 0, 7, 0))) }, ErrMalformed},
		{"silence", func(*script) {}, ErrTimeout},
		{"nothing but a fragment", func(s *script) { s.reply([]byte{1, 2, 3}) }, ErrMalformed},
	} {
		t.Run("lookup: "+test.name, func(t *testing.T) {
			s := newScript(t)
			test.replies(s)
			var out Listener
			err := s.conn.Lookup(id, 0, &out)
			require.ErrorIs(t, err, test.want)
			if err == nil {
				require.EqualValues(t, 10, out.Inode)
				return
			}
			var typed *Error
			require.ErrorAs(t, err, &typed)
		})
	}
}

// TestLookupEachScripts: replies that belong to others, or that never come.
func TestLookupEachScripts(t *testing.T) {
	listener, other := listenerBody("127.0.0.1:80", 10), listenerBody("127.0.0.1:81", 11)
	ask := func(addr string, inode uint32) Ask {
		return Ask{ListenerID{Family: FamilyIPv4, Local: netip.MustParseAddrPort(addr)}, inode}
	}
	asks := []Ask{ask("127.0.0.1:80", 10), ask("127.0.0.1:81", 11)}
	exact := func(seq uint32, body []byte) []byte { return rawMessage(sockDiagByFamily, 0, seq, body) }
	for _, test := range []struct {
		name    string
		replies func(s *script)
		want    error
		answers []error
	}{
		{"both", func(s *script) { s.reply(exact(2, listener)); s.reply(exact(3, other)) }, nil, []error{nil, nil}},
		{"in one datagram", func(s *script) { s.reply(exact(2, listener), exact(3, other)) }, nil, []error{nil, nil}},
		{"a late one between", func(s *script) { s.reply(exact(2, listener)); s.reply(exact(1, other)); s.reply(exact(3, other)) }, nil, []error{nil, nil}},
		{"the other way round", func(s *script) { s.reply(exact(3, other)); s.reply(exact(2, listener)) }, nil, []error{nil, nil}},
		{"one denied", func(s *script) { s.reply(errorMessage(2, syscall.EPERM)); s.reply(exact(3, other)) }, nil, []error{os.ErrPermission, nil}},
		{"one acknowledged", func(s *script) { s.reply(errorMessage(2, 0)); s.reply(exact(3, other)) }, nil, []error{ErrMalformed, nil}},
		{"one malformed", func(s *script) { s.reply(exact(2, listener[:20])); s.reply(exact(3, other)) }, nil, []error{ErrMalformed, nil}},
		{"one never", func(s *script) { s.reply(exact(3, other)) }, ErrTimeout, nil},
		{"a fragment", func(s *script) { s.reply([]byte{1}) }, ErrMalformed, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t)
			s.reply(doneMessage(1, 0)) // the walk that proves the module
			test.replies(s)
			answers := make([]error, 2)
			err := s.conn.LookupEach(asks, func(i int, _ *Listener, err error) { answers[i] = err })
			require.ErrorIs(t, err, test.want)
			for i := range test.answers {
				require.ErrorIs(t, answers[i], test.answers[i])
			}
		})
	}
	s := newScript(t)
	s.reply(doneMessage(1, syscall.ENOENT))
	require.ErrorIs(t, s.conn.LookupEach(asks, nil), ErrNoModule, "no module")
}

// TestLookupConnectionsScripts: what answers in a connection's place.
func TestLookupConnectionsScripts(t *testing.T) {
	id := ConnectionID{
		Family: FamilyIPv4, Cookie: 7<<32 | 9,
		Local: netip.MustParseAddrPort("127.0.0.1:80"), Remote: netip.MustParseAddrPort("10.0.0.1:4000"),
	}
	socket := func(change func(body []byte)) []byte {
		body := make([]byte, diagMsgLen)
		body[0], body[1] = FamilyIPv4, byte(Established)
		binary.BigEndian.PutUint16(body[4:], 80)
		binary.BigEndian.PutUint16(body[6:], 4000)
		copy(body[8:], []byte{127, 0, 0, 1})
		copy(body[24:], []byte{10, 0, 0, 1})
		binary.NativeEndian.PutUint32(body[44:], 9)
		binary.NativeEndian.PutUint32(body[48:], 7)
		change(body)
		return rawMessage(sockDiagByFamily, 0, 2, body)
	}
	for _, test := range []struct {
		name  string
		reply []byte
		want  error
	}{
		{"it", socket(func([]byte) {}), nil},
		{"closed since", socket(func(b []byte) { b[1] = byte(TimeWait) }), nil},
		{"another cookie", socket(func(b []byte) { b[48]++ }), ErrNotFound},
		{"the listener", socket(func(b []byte) { clear(b[24:40]); b[6], b[7] = 0, 0 }), ErrNotFound},
		{"another port", socket(func(b []byte) { b[5]++ }), ErrNotFound},
		{"ended", errorMessage(2, syscall.ENOENT), ErrNotFound},
		{"denied", errorMessage(2, syscall.EPERM), os.ErrPermission},
		{"acknowledged", errorMessage(2, 0), ErrMalformed},
		{"short", rawMessage(sockDiagByFamily, 0, 2, make([]byte, 20)), ErrMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScript(t)
			s.reply(doneMessage(1, 0)) // the walk that proves the module
			s.reply(test.reply)
			answers := 0
			require.NoError(t, s.conn.LookupConnections([]ConnectionID{id}, false, func(_ int, _ *Socket, err error) {
				answers++
				require.ErrorIs(t, err, test.want)
			}))
			require.Equal(t, 1, answers)
		})
	}
	s := newScript(t)
	s.reply(doneMessage(1, syscall.ENOENT))
	require.ErrorIs(t, s.conn.LookupConnections([]ConnectionID{id}, false, nil), ErrNoModule, "no module")
}

// TestCgroupOnAnOldKernel: its check of the bytecode knows no such condition.
func TestCgroupOnAnOldKernel(t *testing.T) {
	for cgroup, want := range map[uint64]error{7: ErrNotSupported, 0: syscall.EINVAL} {
		s := newScript(t)
		s.reply(errorMessage(1, syscall.EINVAL))
		err := s.conn.Walk(Wanted{Ports: PortsOf(80), States: Connected(), Cgroup: cgroup}, nil)
		require.ErrorIs(t, err, want)
		require.Equal(t, cgroup != 0, errors.Is(err, ErrNotSupported))
	}
}

// TestAbandonedDump leaves a real dump unread in the middle.
func TestAbandonedDump(t *testing.T) {
	ns := nettest.Namespace(t)
	var c *Conn
	var port uint16
	ns.Do(func() {
		l := nettest.Listen(t, nettest.ListenOptions{Backlog: 1000})
		port = l.Addr.Port()
		nettest.Queue(t, l.Addr, 500)
		var err error
		c, err = Dial()
		require.NoError(t, err)
	})
	defer c.Close()
	c.out = appendDump(nil, uint32(Connected()), extension(diagInfo), port)
	require.NoError(t, c.send())
	_, err := c.receive()
	require.NoError(t, err)

	seen := 0
	require.NoError(t, c.Sockets([]uint16{port}, Connected(), func(*Socket) error { seen++; return nil }))
	require.Equal(t, 500, seen)
	require.False(t, errors.Is(c.Probe(), ErrNotSupported))
}
