package springboot

import (
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// document is one property source: the environment, the arguments, or one
// document of a config file.
type document struct {
	kind   model.SourceKind
	label  string // "application.yml in app.jar"; see source
	env    bool   // names are spelled the environment's way
	names  []string
	values map[string]string
	// notes hold what a reader must know of one name in addition to where the whole
	// document comes from: "in JAVA_TOOL_OPTIONS".
	notes map[string]string
	// floats are the names of floating point numbers of YAML and JSON: Spring
	// cuts their fraction off where it fails on the same text in a string.
	floats map[string]bool
	// mapped leads from the uniform spelling to the name used here.
	mapped map[string]string
	quota  *quota
}

func newDocument(kind model.SourceKind, label string, q *quota) *document {
	return &document{
		kind: kind, label: label, quota: q,
		values: map[string]string{}, notes: map[string]string{}, floats: map[string]bool{}, mapped: map[string]string{},
	}
}

// put sets a property; a later value of the same name wins. Beyond the quota
// it does nothing.
func (d *document) put(name, value string) {
	if name == "" {
		return
	}
	if _, known := d.values[name]; !known {
		if !d.quota.take(name) {
			return
		}
		d.names = append(d.names, name)
		key := uniform(name)
		if d.env {
			key = uniformEnv(name)
		}
		if _, taken := d.mapped[key]; !taken {
			d.mapped[key] = name
		}
	}
	d.values[name] = value
}

// find returns the name under which the document has the canonical name.
func (d *document) find(name string) (string, bool) { return d.findAs(name, uniform(name)) }

// findAs is find with the uniform spelling worked out before.
func (d *document) findAs(name, key string) (string, bool) {
	if d.env {
		for _, n := range envNames(name) {
			if _, ok := d.values[n]; ok {
				return n, true
			}
		}
	}
	if _, ok := d.values[name]; ok {
		return name, true
	}
	n, ok := d.mapped[key]
	return n, ok
}

// raw looks a name up as it is written, which is how a placeholder that is not
// canonical is resolved. The environment also answers for APP_PORT when asked
// for app.port or app-port (SystemEnvironmentPropertySource).
func (d *document) raw(name string) (string, bool) {
	v, ok := d.values[name]
	if ok || !d.env {
		return v, ok
	}
	under := strings.ReplaceAll(name, ".", "_")
	dashless := strings.ReplaceAll(under, "-", "_")
	for _, n := range []string{under, strings.ReplaceAll(name, "-", "_"), dashless} {
		for _, n := range []string{n, strings.ToUpper(n)} {
			if v, ok := d.values[n]; ok {
				return v, true
			}
		}
	}
	return "", false
}

// source says for people where the property of that (found) name comes from.
func (d *document) source(name string) string {
	if d.label == applicationJSONLabel {
		return d.label
	}
	switch d.kind {
	case model.SourceEnv:
		return "env " + name
	case model.SourceArgument:
		return "argument --" + name
	case model.SourceProperty:
		s := "-D" + name
		if where := d.notes[name]; where != "" {
			s += " in " + where
		}
		return s
	}
	return d.label
}

// applicationJSONLabel is the label of the document of SPRING_APPLICATION_JSON.
const applicationJSONLabel = "SPRING_APPLICATION_JSON"

// indexed is the name of a list's element.
func indexed(name string, i int) string { return name + "[" + strconv.Itoa(i) + "]" }

// Bounds on the properties of the config files together, and of each other source. An
// application in real life stays below a tenth of each. What is beyond one is said once,
// without its text, and everything else continues.
const (
	maxConfigDocs = 256    // documents in all config files
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

// quota is what is left of the properties that one source, or all config files
// together, may have.
type quota struct {
	keys, bytes int
	over        bool
}

func newQuota() *quota { return &quota{keys: maxKeys, bytes: maxKeyBytes} }

// take says whether there is room for another name.
func (q *quota) take(name string) bool {
	if len(name) > maxKey || q.keys < 1 || q.bytes < len(name) {
		q.over = true
	}
	if q.over {
		return false
	}
	q.keys--
	q.bytes -= len(name)
	return true
}

func (q *quota) err() error {
	if q.over {
		return errProperty
	}
	return nil
}

// errProperty is too many properties, or one with too long a name.
var errProperty = tooLarge("properties beyond 20,000, 2 MiB of names, or 512 bytes of one name")
