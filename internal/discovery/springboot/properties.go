package springboot

import (
	"fmt"
	"strings"

	"github.com/magiconair/properties"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// parseProperties reads the documents of a .properties file. Lines of "#---" or
// "!---" separate them (OriginTrackedPropertiesLoader); "name[]=a,b" is a list.
// The file's bytes are ISO 8859-1, as Java's are.
func parseProperties(data []byte, label string, separators bool) ([]*document, error) {
	texts := []string{string(data)}
	if separators {
		texts = splitProperties(texts[0])
	}
	var docs []*document
	for i, text := range texts {
		loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
		props, err := loader.LoadBytes([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%w: document %d", errProperties, i+1)
		}
		d := newDocument(model.SourceFile, label)
		for _, name := range props.Keys() {
			value, _ := props.Get(name)
			d.putProperty(name, value)
		}
		if len(d.names) > 0 {
			docs = append(docs, d)
		}
	}
	return docs, nil
}

// putProperty puts a property of a .properties file, lists expanded.
func (d *document) putProperty(name, value string) {
	list, ok := strings.CutSuffix(name, "[]")
	if !ok {
		d.put(name, value)
		return
	}
	for i, element := range strings.Split(value, ",") {
		d.put(indexed(list, i), strings.TrimLeft(element, " \t"))
	}
}

// splitProperties cuts a file at its separators. A separator must begin its
// line, must not continue a value, and must not follow a comment of its own
// kind directly (so that a box of "#---" lines around a heading is none).
func splitProperties(text string) []string {
	var (
		docs    []string
		current strings.Builder
		last    byte // prefix of the comment on the line before, or 0
		joined  bool // the line before ends in a backslash
		empty   = true
	)
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		comment := byte(0)
		if lead := strings.TrimLeft(body, " \t\f"); !joined && lead != "" && (lead[0] == '#' || lead[0] == '!') {
			comment = lead[0]
		}
		if comment != 0 && comment != last && isSeparator(body) {
			docs = append(docs, current.String())
			current.Reset()
			empty = true
			continue
		}
		if comment != 0 && empty && len(docs) > 0 {
			// A comment in front of a document's first property takes the
			// separator back.
			rest := current.String()
			current.Reset()
			current.WriteString(docs[len(docs)-1] + rest)
			docs, empty = docs[:len(docs)-1], false
		}
		empty = empty && (comment != 0 || strings.TrimSpace(body) == "")
		current.WriteString(line)
		joined = comment == 0 && continues(body)
		last = comment
	}
	return append(docs, current.String())
}

func isSeparator(line string) bool {
	line = strings.TrimRight(line, " \t\f")
	return line == "#---" || line == "!---"
}

// continues says that an odd number of backslashes ends the line.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}
