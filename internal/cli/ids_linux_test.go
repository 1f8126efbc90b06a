package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

func TestIDsAreThoseOfTheProcess(t *testing.T) {
	proc := hostfs.Real(t)
	uid, err := effective(proc, os.Getpid(), "Uid")
	require.NoError(t, err)
	gid, err := effective(proc, os.Getpid(), "Gid")
	require.NoError(t, err)
	require.Equal(t, []int64{int64(os.Geteuid()), int64(os.Getegid())}, []int64{uid, gid})

	var stdout, stderr bytes.Buffer
	require.Zero(t, Main(t.Context(), []string{"ids"}, &stdout, &stderr), stderr.String())
	var ids userIDs
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &ids))
}
