package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestExitCode(t *testing.T) {
	status := func(s model.Status) error { return &failure{&statusError{s}} }
	tests := map[string]struct {
		err  error
		want int
	}{
		"fine":                      {nil, 0},
		"the machine":               {&failure{errors.New("scan: no permission")}, 1},
		"cobra's complaint":         {errors.New("unknown flag"), 2},
		"the command's complaint":   {&failure{usagef("--interval")}, 2},
		"wrapped complaint":         {&failure{fmt.Errorf("a: %w", usagef("b"))}, 2},
		"warning (--exit-status)":   {status(model.StatusWarning), 10},
		"saturated (--exit-status)": {status(model.StatusSaturated), 11},
		"losing (--exit-status)":    {status(model.StatusLosing), 12},
		"down (--exit-status)":      {status(model.StatusDown), 13},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, exitCode(tt.err)) })
	}
}
