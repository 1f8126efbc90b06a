package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsJVM(t *testing.T) {
	for comm, want := range map[string]bool{
		"java": true, "jsvc": true, "jsvc.exec": true, "javac": false, "nginx": false, "": false, "http-nio-8080-A": false,
	} {
		require.Equal(t, want, IsJVM(comm), comm)
	}
}
