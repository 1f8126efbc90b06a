package catalina

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The narrowest valve counts, whose waiting requests hold their threads.
func TestSemaphoreValve(t *testing.T) {
	const class = `className="org.apache.catalina.valves.SemaphoreValve"`
	for valves, want := range map[string]int{
		`<Valve ` + class + ` concurrency="3"/>`: 3,
		`<Valve ` + class + `/>`:                 10,
		`<Valve ` + class + ` concurrency="7"/><Valve ` + class + ` concurrency="5"/>`:              5,
		`<Valve ` + class + ` concurrency="3" block="false"/>`:                                      0,
		`<Valve className="org.apache.catalina.valves.StuckThreadDetectionValve" concurrency="3"/>`: 0,
		``: 0,
	} {
		doc, err := parseXML([]byte(`<Service><Engine><Host>` + valves + `</Host></Engine></Service>`))
		require.NoError(t, err)
		r := reader{server: &Server{File: "conf/server.xml"}, from: &sources{}}
		gate := r.gate(doc.root)
		if want == 0 {
			require.Nil(t, gate, valves)
			continue
		}
		require.Equal(t, want, gate.Value, valves)
		require.Contains(t, gate.Source, "SemaphoreValve")
	}
}
