package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// resigned changes a recording, and its checksums with it.
func resigned(t *testing.T, text []byte, from, to string) (out []byte) {
	t.Helper()
	require.Contains(t, string(text), from)
	table := crc32.MakeTable(crc32.Castagnoli)
	for l := range bytes.Lines(text) {
		body := bytes.ReplaceAll(bytes.TrimSuffix(l[9:], []byte("\n")), []byte(from), []byte(to))
		out = append(fmt.Appendf(out, "%08x ", crc32.Checksum(body, table)), append(body, '\n')...)
	}
	return out
}

func momentsOf(t *testing.T, in io.Reader) []*model.Snapshot {
	t.Helper()
	r, err := recording.NewReader(in)
	require.NoError(t, err)
	j := recording.Rejudge(r)
	out, err := j.All()
	require.NoError(t, err)
	return out
}

// compressed is a small file that would be n bytes.
func compressed(t *testing.T, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(make([]byte, n))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}
