package lab

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// snapshotSchema is where `make prove PROOF=lab` finds it.
const snapshotSchema = "docs/schema/snapshot.schema.json"

// conforms holds a document that tcpdiag printed against the published JSON Schema.
func conforms(schemaFile string, document []byte) error {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("lab: document: %w", err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("lab: document: %w", err)
	}
	return nil
}

func TestConforms(t *testing.T) {
	t.Chdir("../../..")
	document, err := os.ReadFile("internal/render/testdata/a5_clients.json")
	require.NoError(t, err)
	require.NoError(t, conforms(snapshotSchema, document))
	require.ErrorContains(t, conforms(snapshotSchema, []byte(`{"schema": "tcpdiag.snapshot/v1", "listeners": 7}`)), "listeners")
}
