package netstat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// The sums of all processors, of the columns that the kernel has.
func TestConntrackFile(t *testing.T) {
	const text = `entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
000000ff  00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000002 0000000b 00000000 00000000  00000000 00000000 00000000 00000000
000000ff  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000003 00000010 00000001 00000000  00000000 00000000 00000000 00000000
`
	read := func(text string) (map[string]uint64, error) {
		fs := hostfs.At(t, proctest.Fake(t, map[string]string{"7/net/stat/nf_conntrack": text}))
		f, err := OpenConntrack(fs, 7)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		out := map[string]uint64{}
		return out, f.Read(out)
	}
	out, err := read(text)
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"nf_conntrack_drop": 27, "nf_conntrack_early_drop": 1, "nf_conntrack_insert_failed": 5, "nf_conntrack_chaintoolong": 1}, out)

	out, err = read("entries drop\n00000001 0000000a\n")
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"nf_conntrack_drop": 10}, out)

	for _, bad := range []string{"entries drop\n00000001\n", "entries drop\n00000001 zz\n"} {
		_, err = read(bad)
		require.ErrorIs(t, err, hostproc.ErrMalformed)
	}
}
