package properties

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Document is one property source: the environment, the arguments, or one
// document of a config file.
type Document struct {
	Kind   model.SourceKind
	Label  string // "application.yml in app.jar"; see source
	Env    bool   // names are spelled the environment's way
	Names  []string
	Values map[string]string
	// Notes hold what a reader must know of one name in addition to where the whole
	// document comes from: "in JAVA_TOOL_OPTIONS".
	Notes map[string]string
	// Floats are the names of floating point numbers of YAML and JSON: Spring
	// cuts their fraction off where it fails on the same text in a string.
	Floats map[string]bool
	// mapped leads from the uniform spelling to the name used here.
	mapped map[string]string
	Quota  *Quota
}

// New is a source without properties.
func New(kind model.SourceKind, label string, q *Quota) *Document {
	return &Document{
		Kind: kind, Label: label, Quota: q,
		Values: map[string]string{}, Notes: map[string]string{}, Floats: map[string]bool{}, mapped: map[string]string{},
	}
}

// Put sets a property; a later value of the same name wins. Beyond the quota
// it does nothing.
func (d *Document) Put(name, value string) {
	if name == "" {
		return
	}
	if _, known := d.Values[name]; !known {
		if !d.Quota.take(name) {
			return
		}
		d.Names = append(d.Names, name)
		key := Uniform(name)
		if d.Env {
			key = UniformEnv(name)
		}
		if _, taken := d.mapped[key]; !taken {
			d.mapped[key] = name
		}
	}
	d.Values[name] = value
}

// find returns the name under which the document has the canonical name.
func (d *Document) find(name string) (string, bool) { return d.findAs(name, Uniform(name)) }

// findAs is find with the uniform spelling worked out before.
func (d *Document) findAs(name, key string) (string, bool) {
	if d.Env {
		for _, n := range envNames(name) {
			if _, ok := d.Values[n]; ok {
				return n, true
			}
		}
	}
	if _, ok := d.Values[name]; ok {
		return name, true
	}
	n, ok := d.mapped[key]
	return n, ok
}

// Raw looks a name up as it is written, which is how a placeholder that is not
// canonical is resolved. The environment also answers for APP_PORT when asked
// for app.port or app-port (SystemEnvironmentPropertySource).
func (d *Document) Raw(name string) (string, bool) {
	v, ok := d.Values[name]
	if ok || !d.Env {
		return v, ok
	}
	under := strings.ReplaceAll(name, ".", "_")
	dashless := strings.ReplaceAll(under, "-", "_")
	for _, n := range []string{under, strings.ReplaceAll(name, "-", "_"), dashless} {
		for _, n := range []string{n, strings.ToUpper(n)} {
			if v, ok := d.Values[n]; ok {
				return v, true
			}
		}
	}
	return "", false
}

// Source says for people where the property of that (found) name comes from.
func (d *Document) Source(name string) string {
	if d.Label == ApplicationJSONLabel {
		return d.Label
	}
	switch d.Kind {
	case model.SourceEnv:
		return "env " + name
	case model.SourceArgument:
		return "argument --" + name
	case model.SourceProperty:
		s := "-D" + name
		if where := d.Notes[name]; where != "" {
			s += " in " + where
		}
		return s
	}
	return d.Label
}

// ApplicationJSONLabel is the label of the document of SPRING_APPLICATION_JSON.
const ApplicationJSONLabel = "SPRING_APPLICATION_JSON"

// indexed is the name of a list's element.
func indexed(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }

// Bounds on the properties of the config files together, and of each other source. An
// application in real life stays below a tenth of each. What is beyond one is said once,
// without its text, and everything else continues.
const (
	MaxConfigDocs = 256    // documents in all config files
	maxLines      = 50_000 // of one .properties file
	maxKeys       = 20_000
	maxKey        = 512     // bytes of one name
	maxKeyBytes   = 2 << 20 // of all names
	maxElements   = 1_000   // of a list
	maxJSON       = 256 << 10
	maxYAMLNodes  = 50_000 // once aliases are followed
	maxYAMLDepth  = 200    // cycles of aliases included
	maxYAMLMarks  = 50_000 // what can begin a node, see countMarks
	maxGroups     = 256    // keys of a map of lists
	maxSteps      = 20_000 // placeholders of all values
)

// Quota is what is left of the properties that one source, or all config files
// together, may have.
type Quota struct {
	keys, bytes int
	Over        bool
}

// NewQuota is one of which nothing is used.
func NewQuota() *Quota { return &Quota{keys: maxKeys, bytes: maxKeyBytes} }

// take says whether there is room for another name.
func (q *Quota) take(name string) bool {
	if len(name) > maxKey || q.keys < 1 || q.bytes < len(name) {
		q.Over = true
	}
	if q.Over {
		return false
	}
	q.keys--
	q.bytes -= len(name)
	return true
}

// Err is ErrProperty where there was no room for a name.
func (q *Quota) Err() error {
	if q.Over {
		return ErrProperty
	}
	return nil
}

// ErrProperty is too many properties, or one with too long a name.
var ErrProperty = bounded.TooLarge("properties beyond 20,000, 2 MiB of names, or 512 bytes of one name")

// What is wrong with a file's form. A parser's own words are not passed on:
// they repeat parts of the file.
var (
	errYAML       = errors.New("malformed YAML")
	errProperties = errors.New("malformed properties")
	errXML        = errors.New("malformed XML")
	errJSON       = errors.New("malformed JSON")
	ErrExpression = errors.New("malformed profile expression")
)

// malformedYAML keeps the line's number, which the decoder has in its text.
func malformedYAML(err error) error {
	if line := regexp.MustCompile(`^yaml: line (\d{1,9})`).FindStringSubmatch(err.Error()); line != nil {
		return fmt.Errorf("%w: line %s", errYAML, line[1])
	}
	return errYAML
}

func malformedXML(err error) error {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w: line %d", errXML, syntax.Line)
	}
	return errXML
}

func malformedJSON(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w: byte %d", errJSON, syntax.Offset)
	}
	return errJSON
}
