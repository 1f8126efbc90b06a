package catalina

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
)

var (
	errXML     = errors.New("malformed XML")
	errNoRoot  = errors.New("no element in it")
	errTooDeep = errors.New("elements nest too deep")
)

// malformed keeps the line: the decoder's own words repeat parts of the file.
func malformed(err error) error {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w: line %d", errXML, syntax.Line)
	}
	return errXML
}

// element is an element of an XML document with the lines it is on.
type element struct {
	name     string
	line     int
	attrs    map[string]attr
	children []*element
}

type attr struct {
	text string
	line int
}

// document is a parsed file.
type document struct {
	root *element
	// included are entities whose content was not read: other files, and
	// markup that is declared inside the document.
	included []string
}

// parseXML reads a document. Entities are not expanded inside each other, and
// no other file is opened, so the size of the input bounds everything.
func parseXML(data []byte) (*document, error) {
	data, err := decode(data)
	if err != nil {
		return nil, err
	}
	p := &parser{data: data, lines: lineStarts(data), decoder: xml.NewDecoder(bytes.NewReader(data))}
	p.decoder.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		start := p.decoder.InputOffset()
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) {
			return p.finish()
		}
		if err != nil {
			return nil, malformed(err)
		}
		if err := p.take(token, start); err != nil {
			return nil, err
		}
	}
}

type parser struct {
	decoder *xml.Decoder
	data    []byte
	lines   lines
	stack   []*element
	doc     document
	size    int  // elements and attributes so far
	doctype bool // there was one; XML has no second
}

func (p *parser) take(token xml.Token, start int64) error {
	switch token := token.(type) {
	case xml.StartElement:
		return p.open(token, start)
	case xml.EndElement:
		p.stack = p.stack[:len(p.stack)-1]
	case xml.Directive:
		p.entities(string(token))
	}
	return nil
}

func (p *parser) open(token xml.StartElement, start int64) error {
	if len(p.stack) >= maxDepth {
		return fmt.Errorf("line %d: %w", p.lines.at(int(start)), errTooDeep)
	}
	if p.size += 1 + len(token.Attr); p.size > maxElements {
		return fmt.Errorf("%w (%d elements and attributes)", bounded.ErrTooLarge, maxElements)
	}
	e := &element{name: token.Name.Local, line: p.lines.at(int(start)), attrs: make(map[string]attr, len(token.Attr))}
	at := p.attrLines(start, p.decoder.InputOffset())
	for _, a := range token.Attr {
		line, ok := at[a.Name.Local]
		if !ok {
			line = e.line
		}
		e.attrs[a.Name.Local] = attr{text: a.Value, line: line}
	}
	if len(p.stack) > 0 {
		parent := p.stack[len(p.stack)-1]
		parent.children = append(parent.children, e)
	} else if p.doc.root == nil {
		p.doc.root = e
	}
	p.stack = append(p.stack, e)
	return nil
}

// attrLines are the lines on which the attributes of a start tag begin. The tag
// is known to be well-formed.
func (p *parser) attrLines(start, end int64) map[string]int {
	out := map[string]int{}
	tag := p.data[start:end]
	for i := 0; i < len(tag); {
		equals := bytes.IndexByte(tag[i:], '=')
		if equals < 0 {
			break
		}
		equals += i
		name := bytes.TrimRight(tag[i:equals], " \t\r\n")
		begin := bytes.LastIndexAny(name, " \t\r\n:") + 1
		quote := bytes.IndexAny(tag[equals:], `"'`)
		if quote < 0 {
			break
		}
		value := equals + quote + 1
		length := bytes.IndexByte(tag[value:], tag[value-1])
		if length < 0 {
			break
		}
		out[string(name[begin:])] = p.lines.at(int(start) + i + begin)
		i = value + length + 1
	}
	return out
}

// entities learns the general entities of a DOCTYPE: text is replaced, what is
// markup or another file is named and left out.
func (p *parser) entities(directive string) {
	if p.doctype || !strings.HasPrefix(directive, "DOCTYPE") {
		return
	}
	p.doctype = true
	declaration := regexp.MustCompile(`<!ENTITY\s+([^\s%]+)\s+(?:"([^"]*)"|'([^']*)'|(SYSTEM|PUBLIC)\s+([^>]*))`)
	p.decoder.Entity = map[string]string{}
	for _, found := range declaration.FindAllStringSubmatch(directive, maxEntities) {
		name, text := found[1], found[2]+found[3]
		grown := len(text) * bytes.Count(p.data, []byte("&"+name+";"))
		if found[4] != "" || strings.ContainsAny(text, "<&") || grown > maxEntityText {
			text = ""
			p.doc.included = append(p.doc.included, name)
		}
		p.decoder.Entity[name] = text
	}
}

// finish keeps of the entities that were left out those that are used.
func (p *parser) finish() (*document, error) {
	if p.doc.root == nil {
		return nil, errNoRoot
	}
	var used []string
	for _, name := range p.doc.included {
		if bytes.Contains(p.data, []byte("&"+name+";")) {
			used = append(used, name)
		}
	}
	p.doc.included = used
	return &p.doc, nil
}

// each calls fn for the children of that name.
func (e *element) each(name string, fn func(*element)) {
	for _, child := range e.children {
		if child.name == name {
			fn(child)
		}
	}
}

// lines are the offsets at which a text's lines begin.
type lines []int

func lineStarts(data []byte) lines {
	starts := make(lines, 1, bytes.Count(data, []byte("\n"))+1)
	for i, b := range data {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// at is the number of the line that holds the byte at offset; the first is 1.
func (l lines) at(offset int) int {
	i, found := slices.BinarySearch(l, offset)
	if found {
		return i + 1
	}
	return i
}
