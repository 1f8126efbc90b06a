package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

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

// printableJSON rewrites the controls in a document's strings, which another
// process may have chosen, as text: who decodes \u009b and prints it should
// not have sent a control sequence to a terminal. encoding/json writes C0 as
// escapes, and DEL, C1 and bidirectional marks as they are.
func printableJSON(in []byte) []byte {
	var out bytes.Buffer
	copied, at := 0, 0 // what lies between them stays as it is
	for at < len(in) {
		if c := in[at]; c == '\n' || c >= ' ' && c < 0x7f && c != '\\' { // that of the layout: in a string it is an escape
			at++
			continue
		}
		if in[at] == '\\' {
			n := escapeLen(in[at:])
			if in[at+1] != '"' && in[at+1] != '\\' && in[at+1] != '/' {
				out.Write(in[copied:at])
				out.WriteByte('\\')
				copied = at
			}
			at += n
			continue
		}
		r, n := utf8.DecodeRune(in[at:])
		if !unicode.IsPrint(r) {
			out.Write(in[copied:at])
			fmt.Fprintf(&out, `\\u%04x`, r)
			copied = at + n
		}
		at += n
	}
	if out.Len() == 0 {
		return in
	}
	out.Write(in[copied:])
	return out.Bytes()
}

// escapeLen is the length of the escape that begins here: \n, or \u001b.
func escapeLen(in []byte) int {
	if len(in) > 5 && in[1] == 'u' {
		return 6
	}
	return 2
}
