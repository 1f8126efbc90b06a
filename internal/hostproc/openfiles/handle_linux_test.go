package openfiles

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestKeptFiles(t *testing.T) {
	fs := hostfs.Real(t)
	kept, err := OpenHandle(fs, os.Getpid())
	require.NoError(t, err)
	defer kept.Close()
	now := time.Now()
	before, age, err := kept.Open(now)
	require.NoError(t, err)
	require.Zero(t, age)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	if fs.CountsOpenFiles() {
		after, _, err := kept.Open(now)
		require.NoError(t, err)
		require.Equal(t, before+1, after)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = kept.Open(now); _, _ = kept.Limit() }))
	}
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	got, err := kept.Limit()
	require.NoError(t, err)
	require.EqualValues(t, limit.Cur, got)
}

// Before Linux 6.2 the files are listed, once a second at most.
func TestKeptFilesListed(t *testing.T) {
	fs := hostfs.Real(t)
	fs = fs.Listing()
	kept, err := OpenHandle(fs, os.Getpid())
	require.NoError(t, err)
	defer kept.Close()
	now := time.Now()
	first, age, err := kept.Open(now)
	require.NoError(t, err)
	require.Zero(t, age)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	n, age, err := kept.Open(now.Add(listEvery - 1))
	require.NoError(t, err)
	require.Equal(t, first, n)
	require.Equal(t, listEvery-1, age)
	n, age, err = kept.Open(now.Add(listEvery))
	require.NoError(t, err)
	require.Equal(t, first+1, n)
	require.Zero(t, age)
}

func TestParseFilesLimit(t *testing.T) {
	for text, want := range map[string]int{
		"Max open files            1024                 524288               files     \n":              1024,
		"Limit  Soft\nMax open files            unlimited            unlimited            files     \n": math.MaxInt,
	} {
		got, err := parseFilesLimit([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "Max open files", "Max open files x y files\n"} {
		_, err := parseFilesLimit([]byte(bad))
		require.ErrorIs(t, err, hostproc.ErrMalformed)
	}
}

func FuzzParseFilesLimit(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("Max open files            1024                 524288               files     \n"))
	m.Fuzz(func(t *testing.T, data []byte) {
		if n, err := parseFilesLimit(data); err == nil && n < 0 {
			t.Fatal(n)
		}
	})
}
