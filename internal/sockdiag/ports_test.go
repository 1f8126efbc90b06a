package sockdiag

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// audit is the kernel's inet_diag_bc_audit: nil when it would take the code.
func audit(t require.TestingT, code []byte) {
	boundary := map[int]bool{len(code): true}
	for at := 0; at < len(code); at += int(code[at+1]) {
		require.Contains(t, []byte{bcCompareLen, bcOpLen}, code[at+1])
		boundary[at] = true
	}
	for at := 0; at < len(code); at += int(code[at+1]) {
		least := bcOpLen
		if code[at] != bcJump {
			require.Contains(t, []byte{bcSourceEQ, bcSourceGE, bcSourceLE}, code[at])
			least = bcCompareLen
		}
		no := int(binary.NativeEndian.Uint16(code[at+2:]))
		left := len(code) - at
		require.GreaterOrEqual(t, int(code[at+1]), least)
		require.GreaterOrEqual(t, no, least)
		require.LessOrEqual(t, no, left+bcOpLen)
		require.Zero(t, no%4)
		if no < left {
			require.True(t, boundary[at+no], "op at %d jumps between ops, to %d", at, at+no)
		}
	}
}

// run is the kernel's inet_diag_bc_run for a socket with this source port.
func run(code []byte, port uint16) bool {
	left := len(code)
	for left > 0 {
		op := code[len(code)-left:]
		argument := func() uint16 { return binary.NativeEndian.Uint16(op[bcOpLen+2:]) }
		yes := true
		switch op[0] {
		case bcJump:
			yes = false
		case bcSourceEQ:
			yes = port == argument()
		case bcSourceGE:
			yes = port >= argument()
		case bcSourceLE:
			yes = port <= argument()
		}
		if yes {
			left -= int(op[1])
		} else {
			left -= int(binary.NativeEndian.Uint16(op[2:]))
		}
	}
	return left == 0
}

// requireExact tries every step-th port.
func requireExact(t require.TestingT, ports []uint16, step int) {
	var f portFilter
	f.set(PortsOf(ports...))
	require.LessOrEqual(t, len(f.ranges), maxRanges)
	code := appendBytecode(nil, f.ranges, 0)
	require.Len(t, code, bytecodeLen(f.ranges))
	require.Less(t, len(code)+attrHeaderLen, 1<<15)
	audit(t, code)
	want := make([]bool, 1<<16)
	for _, p := range ports {
		want[p] = true
	}
	for p := 0; p < 1<<16; p += step {
		if got := run(code, uint16(p)) && f.has(uint16(p)); got != want[p] {
			require.Equal(t, want[p], got, "port %d", p)
		}
	}
}

func TestBytecodeSelectsThePorts(t *testing.T) {
	every := func(first, last, step int) (ports []uint16) {
		for p := first; p <= last; p += step {
			ports = append(ports, uint16(p))
		}
		return ports
	}
	for _, test := range []struct {
		name   string
		ports  []uint16
		ranges int
		coarse bool
	}{
		{"one", []uint16{8080}, 1, false},
		{"neighbours", []uint16{8081, 8080, 8080}, 1, false},
		{"two apart", []uint16{8080, 8082}, 2, false},
		{"both ends", []uint16{0, 65535}, 2, false},
		{"300", every(10000, 10599, 2), 300, false},
		{"most that fit", every(0, 2*maxRanges-1, 2), maxRanges, false},
		{"one more", every(0, 2*maxRanges, 2), 1, true},
		{"many", every(0, 65535, 7), 1, true},
		{"many and far", append(every(0, 2998, 2), 50000), 2, true},
		{"all", every(0, 65535, 1), 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f portFilter
			f.set(PortsOf(test.ports...))
			require.Len(t, f.ranges, test.ranges)
			require.Equal(t, test.coarse, f.coarse)
			requireExact(t, test.ports, 1)
		})
	}
}

func TestFilterIsReused(t *testing.T) {
	var f portFilter
	f.set(PortsOf(1, 3, 5, 7))
	f.set(PortsOf(9))
	require.Equal(t, []portRange{{9, 9}}, f.ranges)
	require.EqualValues(t, 9, f.single())
	f.set(new(Ports))
	require.Empty(t, f.ranges)
	require.Zero(t, f.single())
}

// TestPorts compares the set with a plain one.
func TestPorts(t *testing.T) {
	p := PortsOf(0, 63, 64, 65535)
	p.AddRange(100, 300)
	p.AddRange(65000, 65100)
	p.Remove(200)
	p.Remove(7) // was not in
	for port := range 1 << 16 {
		want := port == 0 || port == 63 || port == 64 || port == 65535 || port >= 100 && port <= 300 && port != 200 || port >= 65000 && port <= 65100
		require.Equal(t, want, p.Has(uint16(port)), "%d", port)
	}
	require.Equal(t, []portRange{{0, 0}, {63, 64}, {100, 199}, {201, 300}, {65000, 65100}, {65535, 65535}}, p.appendRanges(nil, 1))
	require.Equal(t, []portRange{{0, 0}, {63, 300}, {65000, 65100}, {65535, 65535}}, p.appendRanges(nil, 36))
	all := new(Ports)
	all.AddRange(0, 65535)
	require.Equal(t, []portRange{{0, 65535}}, all.appendRanges(nil, 1))
}

// TestFilterWithCgroup: the code behind the condition is the ports' own.
func TestFilterWithCgroup(t *testing.T) {
	var f portFilter
	f.set(PortsOf(1, 3, 5, 8080))
	b := appendFilter(nil, f.ranges, 1<<40|7)
	require.EqualValues(t, len(b), binary.NativeEndian.Uint16(b))
	code := b[attrHeaderLen:]
	require.EqualValues(t, bcCgroup, code[0])
	require.EqualValues(t, bcCgroupLen, code[1], "a socket of the cgroup goes on to the ports")
	require.EqualValues(t, len(code)+bcOpLen, binary.NativeEndian.Uint16(code[2:]), "any other is rejected")
	require.EqualValues(t, 1<<40|7, binary.NativeEndian.Uint64(code[4:]))
	require.Equal(t, appendBytecode(nil, f.ranges, 0), code[bcCgroupLen:])
}

func FuzzPorts(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte{31, 144})
	m.Add([]byte{0, 0, 255, 255, 0, 1, 0, 3})
	m.Fuzz(func(t *testing.T, b []byte) {
		var ports []uint16
		for ; len(b) >= 2; b = b[2:] {
			ports = append(ports, binary.BigEndian.Uint16(b))
		}
		if len(ports) > 0 {
			requireExact(t, ports, 13) // all would be slow; ports are anywhere
		}
	})
}
