package render_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/docs"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

const page = "# Title\n\n## max_threads\n\n**Seen:** requests [wait](a.md) in\n`Tomcat`. And more.\n**Change:** the `handlers`.\n\nA paragraph.\n\n## When a value is missing\n\nNo topic.\n"

func TestRunbook(t *testing.T) {
	topics := render.Topics(page)
	require.Len(t, topics, 1)
	var b bytes.Buffer
	require.NoError(t, render.Runbook(&b, topics[0], render.TextOptions{}))
	require.Equal(t, "max_threads\n\n Seen: requests wait in Tomcat. And more.\n Change: the handlers.\n\n A paragraph.\n", b.String())
	b.Reset()
	require.NoError(t, render.TopicList(&b, topics, render.TextOptions{}))
	require.Contains(t, b.String(), "  max_threads      requests wait in Tomcat.\n")
}

// Each cause that a verdict can have is explained.
func TestEveryCauseIsExplained(t *testing.T) {
	var names []string
	for _, topic := range render.Topics(docs.Troubleshooting) {
		names = append(names, topic.Name)
	}
	for _, c := range append(model.DropCauses(), model.CauseMaxThreads, model.CauseExecutorQueue, model.CauseBacklogClamped,
		model.CauseListenerClosed, model.CauseNoListener, model.CauseEphemeralPorts, model.CauseConnectionPool, model.CauseDownstream) {
		require.Contains(t, names, string(c))
	}
}
