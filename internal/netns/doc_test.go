package netns_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
)

func TestPath(t *testing.T) {
	require.Equal(t, "/host/proc/42/ns/net", netns.Path("/host/proc", 42))
}
