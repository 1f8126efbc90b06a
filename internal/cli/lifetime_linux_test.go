package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// An agent in an ephemeral container, which nobody can remove, ends by itself, and well.
func TestAgentEndsAfterItsLifetime(t *testing.T) {
	p := start(t, nettest.Namespace(t), nil, "--lifetime", "2s")
	err := <-p.done
	p.done <- err
	require.NoError(t, err)
}
