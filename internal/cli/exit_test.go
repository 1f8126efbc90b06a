package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestExitCode(t *testing.T) {
	status := func(s model.Status) error { return &command.Failure{Err: &command.StatusError{Status: s}} }
	tests := map[string]struct {
		err  error
		want int
	}{
		"fine":                      {nil, 0},
		"the machine":               {&command.Failure{Err: errors.New("scan: no permission")}, 1},
		"cobra's complaint":         {errors.New("unknown flag"), 2},
		"the command's complaint":   {&command.Failure{Err: command.Usagef("--interval")}, 2},
		"wrapped complaint":         {&command.Failure{Err: fmt.Errorf("a: %w", command.Usagef("b"))}, 2},
		"warning (--exit-status)":   {status(model.StatusWarning), 10},
		"saturated (--exit-status)": {status(model.StatusSaturated), 11},
		"losing (--exit-status)":    {status(model.StatusLosing), 12},
		"down (--exit-status)":      {status(model.StatusDown), 13},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, command.ExitCode(tt.err)) })
	}
}
