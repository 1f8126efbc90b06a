package clients

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/tap"
)

// Each row is a reading, seconds after the tap was opened.
func TestConservation(t *testing.T) {
	type reading struct {
		at             float64
		opened, letIn  uint64
		late           uint64
		open           int
		ended          uint64 // let in at a port that is no longer followed
		alone, broken  bool
		elsewhereKnown bool
		elsewhere      uint64
	}
	for name, readings := range map[string][]reading{
		"each socket is a client": {
			{at: 11, opened: 5, letIn: 5, alone: true},
			{at: 20, opened: 45, letIn: 30, late: 5, open: 10, alone: true},
			{at: 40, opened: 45, letIn: 30, late: 15, alone: true},
		},
		"those that had come before": {{at: 11, opened: 9, letIn: 2, alone: true}, {at: 60, opened: 10, letIn: 3, alone: true}},
		"more clients than sockets":  {{at: 11, opened: 5, letIn: 6, alone: true, broken: true}},
		"and elsewhere":              {{at: 1, opened: 5, letIn: 6, broken: true, elsewhereKnown: true}},
		"a client was missed": {
			{at: 11, opened: 5, letIn: 5, alone: true},
			{at: 12, opened: 7, letIn: 6, alone: true},
			{at: 17, opened: 7, letIn: 6, alone: true, broken: true},
		},
		"it comes soon": {
			{at: 11, opened: 5, letIn: 5, alone: true},
			{at: 12, opened: 7, letIn: 6, alone: true},
			{at: 14, opened: 7, letIn: 7, alone: true},
			{at: 19, opened: 8, letIn: 7, alone: true},
		},
		"at other ports": {{at: 11, opened: 50, letIn: 5, elsewhereKnown: true, elsewhere: 45}, {at: 60, opened: 500, letIn: 6, elsewhereKnown: true, elsewhere: 494}},
		"a port is no longer followed": {
			{at: 11, opened: 5, letIn: 5, alone: true},
			{at: 12, opened: 8, letIn: 5, ended: 3, alone: true},
			{at: 13, opened: 9, letIn: 6, alone: true},
			{at: 60, opened: 9, letIn: 6, alone: true},
		},
		"the other port is closed": {
			{at: 11, opened: 50, letIn: 5, elsewhereKnown: true, elsewhere: 45},
			{at: 12, opened: 50, letIn: 5, alone: true},
			{at: 30, opened: 51, letIn: 6, alone: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
			var c conservation
			for _, r := range readings {
				at := begin.Add(time.Duration(r.at * float64(time.Second)))
				report := tap.Report{Opened: &r.opened, Endpoints: []outcome.Endpoint{{LetIn: r.letIn, LetInLate: r.late, Stalling: r.open}}}
				if r.ended > 0 {
					report.Endpoints = append(report.Endpoints, outcome.Endpoint{LetIn: r.ended, Ended: true})
				}
				c.check(&report, r.alone, begin, at)
				require.Equal(t, r.broken, !c.broken.IsZero(), "%+v", r)
				if n := c.elsewhere(); r.elsewhereKnown {
					require.Equal(t, r.elsewhere, *n, "%+v", r)
				} else {
					require.Nil(t, n)
				}
			}
		})
	}
}
