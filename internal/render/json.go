package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// JSON writes the snapshot as one JSON document of schema api.SnapshotSchema.
// Nothing is written when the snapshot cannot be encoded.
func JSON(w io.Writer, s *model.Snapshot) error { return encode(w, api.NewSnapshot(s), "  ") }

// Document writes a document of package api as it is, what another process chose made
// printable: indented, or on one line.
func Document(w io.Writer, document any, indent string) error { return encode(w, document, indent) }

func encode(w io.Writer, document any, indent string) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false) // "a -> b" stays legible; this is no HTML page
	if err := enc.Encode(document); err != nil {
		return fmt.Errorf("render: json: %w", err)
	}
	if _, err := w.Write(printableJSON(buf.Bytes())); err != nil {
		return fmt.Errorf("render: json: %w", err)
	}
	return nil
}

// IncidentsJSON writes the list of incidents as one JSON document.
func IncidentsJSON(w io.Writer, list []recording.Summary) error {
	return encode(w, api.NewIncidents(list), "  ")
}

// IncidentJSON writes an incident as one JSON document.
func IncidentJSON(w io.Writer, s *story.Story) error { return encode(w, api.NewIncident(s), "  ") }
