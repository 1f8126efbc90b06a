package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGiven(t *testing.T) {
	for kind, want := range map[SourceKind]bool{
		SourceDefault: false, SourceFile: true, SourceEnv: true, SourceArgument: true, SourceProperty: true, SourceFlag: true,
		SourceKernel: false, SourceActuator: true, SourceInferred: false, "": false,
	} {
		s := Setting[int]{Kind: kind}
		require.Equal(t, want, s.Given(), kind)
	}
}
