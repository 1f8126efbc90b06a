// Package properties holds Spring's property sources: what stands in .properties, YAML, XML
// and JSON as names and values, the spellings under which a name is found (relaxed
// binding), lists and maps, and the placeholders in values. It opens nothing.
package properties

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/magiconair/properties"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Parse reads the documents of a .properties file. Lines of "#---" or
// "!---" separate them (OriginTrackedPropertiesLoader); "name[]=a,b" is a list.
// The file's bytes are ISO 8859-1, as Java's are.
func Parse(data []byte, label string, separators bool, q *Quota) ([]*Document, error) {
	if bytes.Count(data, []byte("\n"))+bytes.Count(data, []byte("\r")) > maxLines {
		return nil, errLines
	}
	texts := []string{string(data)}
	if separators {
		texts = splitProperties(texts[0])
	}
	if len(texts) > MaxConfigDocs {
		return nil, ErrDocuments
	}
	var docs []*Document
	for i, text := range texts {
		loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
		props, err := loader.LoadBytes([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%w: document %d", errProperties, i+1)
		}
		d := New(model.SourceFile, label, q)
		for _, name := range props.Keys() {
			value, _ := props.Get(name)
			d.putProperty(name, value)
		}
		if q.Over {
			return nil, q.Err()
		}
		if len(d.Names) > 0 {
			docs = append(docs, d)
		}
	}
	return docs, nil
}

// What a config file may not be.
var (
	errLines     = bounded.TooLarge("a .properties file of more than 50,000 lines")
	ErrDocuments = bounded.TooLarge("more than 256 documents")
	errElements  = bounded.TooLarge("a list of more than 1,000 elements")
)

// putProperty puts a property of a .properties file, lists expanded.
func (d *Document) putProperty(name, value string) {
	list, ok := strings.CutSuffix(name, "[]")
	if !ok {
		d.Put(name, value)
		return
	}
	if strings.Count(value, ",") >= maxElements {
		d.Quota.Over = true
		return
	}
	for i, element := range strings.Split(value, ",") {
		d.Put(indexed(list, i), strings.TrimLeft(element, " \t"))
	}
}

// splitProperties cuts a file at its separators. A separator must begin its
// line, must not continue a value, and must not follow a comment of its own
// kind directly (so that a box of "#---" lines around a heading is none). A
// comment in front of a document's first property takes the separator back,
// which then is a comment itself.
func splitProperties(text string) []string {
	var (
		starts = []int{0} // of the documents
		at     int
		last   byte // prefix of the comment on the line before, or 0
		joined bool // the line before ends in a backslash
		empty  = true
	)
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		comment := byte(0)
		if lead := strings.TrimLeft(body, " \t\f"); !joined && lead != "" && (lead[0] == '#' || lead[0] == '!') {
			comment = lead[0]
		}
		at += len(line)
		if comment != 0 && comment != last && isSeparator(body) {
			starts, empty = append(starts, at), true
			continue
		}
		if comment != 0 && empty && len(starts) > 1 {
			starts, empty = starts[:len(starts)-1], false
		}
		empty = empty && (comment != 0 || strings.TrimSpace(body) == "")
		joined = comment == 0 && continues(body)
		last = comment
	}
	return pieces(text, starts)
}

func pieces(text string, starts []int) []string {
	out := make([]string, len(starts))
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		out[i] = text[start:end]
	}
	return out
}

func isSeparator(line string) bool {
	line = strings.TrimRight(line, " \t\f")
	return line == "#---" || line == "!---"
}

// continues says that an odd number of backslashes ends the line.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// ParseXML reads Java's XML form of a properties file
// (Properties.loadFromXML). encoding/xml expands no entities of the document.
func ParseXML(data []byte, label string, q *Quota) ([]*Document, error) {
	var root struct {
		Entries []struct {
			Key   string `xml:"key,attr"`
			Value string `xml:",chardata"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal(data, &root); err != nil {
		return nil, malformedXML(err)
	}
	d := New(model.SourceFile, label, q)
	for _, e := range root.Entries {
		d.Put(e.Key, e.Value)
	}
	return []*Document{d}, q.Err()
}
