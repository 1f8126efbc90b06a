package attacks

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func fifo(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, unix.Mkfifo(name, 0o666))
}
