package procfile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func FuzzEachDirent(f *testing.F) {
	m := mutate.Into(f)
	entry := append(make([]byte, 16), 24, 0, 10, '4', '2', 0, 0, 0)
	m.Add(entry)
	m.Add(append(append([]byte{}, entry...), entry...))
	m.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_ = eachDirent(b, func(int) error { n++; return nil })
		require.LessOrEqual(t, n, len(b)/direntName)
	})
}
