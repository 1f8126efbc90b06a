package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// turns is a sampler whose runs end as listed.
type turns struct {
	stage
	ends []error
}

func (s *turns) Run(context.Context) error {
	err := s.ends[0]
	s.ends = s.ends[1:]
	return err
}

func TestAgentWaitsForAModule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing, other := fmt.Errorf("scan: %w", sockdiag.ErrNoModule), errors.New("another")
		var log bytes.Buffer
		m := &moduleWait{log: slog.New(slog.NewTextHandler(&log, nil))}
		require.Equal(t, "the first scan is not done", m.reason())
		start := time.Now()
		require.Equal(t, other, m.run(t.Context(), &turns{ends: []error{missing, missing, other}}))
		require.Equal(t, 2*moduleRetry, time.Since(start))
		require.Contains(t, m.reason(), "modprobe tcp_diag")
		require.Equal(t, 1, strings.Count(log.String(), "\n"), "logged once: %s", log.String())
	})
}

func TestAgentWaitingForAModuleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		m := &moduleWait{log: slog.New(slog.DiscardHandler)}
		require.NoError(t, m.run(ctx, &turns{ends: []error{sockdiag.ErrNoModule}}))
	})
}
