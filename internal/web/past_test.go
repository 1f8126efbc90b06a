package web

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
)

// Somebody else's many incidents leave one of before on the page.
func TestPastIncidentsAreShared(t *testing.T) {
	var list []recording.Summary // the latest first
	for i := range 50 {
		list = append(list, recording.Summary{ID: fmt.Sprint(i), Owner: "pod a", Address: "10.0.0.1:80"})
	}
	list = append(list, recording.Summary{ID: "of another", Owner: "pod b", Address: "10.0.0.2:80"})
	got := pastIncidents(list, choice{})
	require.Len(t, got, maxPast)
	require.Equal(t, "0", got[0].ID)
	require.Equal(t, "of another", got[maxPast-1].ID)
	require.Len(t, pastIncidents(list[:5], choice{}), 5)
}
