package promexport

import (
	"fmt"
	"io"
	"strings"
)

// WriteTable writes every metric as a row of a Markdown table.
func WriteTable(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range Metrics() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, labelList(d.Labels), strings.ReplaceAll(d.Help, "|", `\|`))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("promexport: table: %w", err)
	}
	return nil
}

func labelList(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
