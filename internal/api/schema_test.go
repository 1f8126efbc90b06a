package api_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/api/plandoc"
	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

const schemaDir = "../../docs/schema"

// schemaOf is the JSON Schema of a document. Readers must tolerate fields that
// they do not know, so it allows more than it lists.
func schemaOf(t *testing.T, document any) []byte {
	t.Helper()
	r := &generator.Reflector{AllowAdditionalProperties: true, Anonymous: true}
	require.NoError(t, r.AddGoComments("github.com/tcpdiag/tcpdiag/internal/api", "."))
	s := r.Reflect(document)
	out, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	return append(out, '\n')
}

// The schemas in docs/schema are written by UPDATE=1 go test ./internal/api.
func TestSchemasAreNotStale(t *testing.T) {
	for name, document := range map[string]any{"snapshot": &api.Snapshot{}, "plan": &plandoc.Plan{}, "incidents": &api.Incidents{}, "incident": &api.Incident{}, "run": &api.Run{}, "fleet": &api.Fleet{}} {
		t.Run(name, func(t *testing.T) {
			golden.Equal(t, filepath.Join(schemaDir, name+".schema.json"), string(schemaOf(t, document)))
		})
	}
}

// Every document among the test data of the renderer is one of its schema.
func TestSchemaAcceptsDocuments(t *testing.T) {
	files, err := filepath.Glob("../render/testdata/*.json")
	require.NoError(t, err)
	checked := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		require.NoError(t, err, file)
		name := schemaName(document)
		if name == "" {
			continue
		}
		schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemaDir, name+".schema.json"))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(document), file)
		checked++
	}
	require.NotZero(t, checked)
}

// schemaName is which schema a document says it is of, "" where it is neither.
func schemaName(document any) string {
	fields, _ := document.(map[string]any)
	switch fields["schema"] {
	case api.SnapshotSchema:
		return "snapshot"
	case plandoc.PlanSchema:
		return "plan"
	case api.FleetSchema:
		return "fleet"
	}
	return ""
}
