package springboot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// commandLine is the document of the --name=value arguments
// (SimpleCommandLinePropertySource). A repeated option's values are joined.
func commandLine(args []string) *document {
	d := newDocument(model.SourceArgument, "arguments", newQuota())
	values := map[string][]string{}
	for _, arg := range args {
		option, ok := strings.CutPrefix(arg, "--")
		if !ok {
			continue
		}
		if option == "" {
			break // POSIX: what follows is no option (Spring Framework 6.2)
		}
		name, value, _ := strings.Cut(option, "=")
		values[name] = append(values[name], value)
		d.put(name, value)
	}
	for name := range d.values {
		d.values[name] = strings.Join(values[name], ",")
	}
	return d
}

// environment is the document of the environment's variables.
func environment(p *Process) *document {
	d := newDocument(model.SourceEnv, "environment", newQuota())
	d.env = true
	for _, name := range sortedKeys(p.Env) {
		d.put(name, p.Env[name])
	}
	return d
}

// systemProperties is the document of the -D options in force; the last one of
// a name counts. When the environment could not be read, the options that came
// from it are still in java.rt.vmArgs.
//
// A JVM keeps no more of it than PerfMaxStringConstLength bytes, 1024 by
// default: the last option of a longer text may be cut.
func systemProperties(p *Process, l *launch) *document {
	d := newDocument(model.SourceProperty, "system properties", newQuota())
	if !p.EnvKnown && p.VMArgs != "" {
		words := strings.Fields(p.VMArgs)
		if len(p.VMArgs) >= maxVMArgs {
			words = words[:len(words)-1]
		}
		for _, o := range asWords(words, "the VM's arguments") {
			d.putOption(o)
		}
	}
	for _, o := range l.options {
		d.putOption(o)
	}
	return d
}

// maxVMArgs is PerfMaxStringConstLength without its final NUL.
const maxVMArgs = 1023

// putOption puts a -D option.
func (d *document) putOption(o option) {
	definition, ok := strings.CutPrefix(o.text, "-D")
	if !ok {
		return
	}
	name, value, _ := strings.Cut(definition, "=")
	d.put(name, value)
	d.notes[name] = o.where
}

// applicationJSON is the document of spring.application.json: the first of the
// arguments, the system properties and the environment that has it.
func applicationJSON(docs []*document) (*document, error) {
	for _, from := range docs {
		for _, name := range []string{"spring.application.json", "SPRING_APPLICATION_JSON"} {
			text, ok := from.raw(name)
			if !ok || text == "" {
				continue
			}
			d := newDocument(from.kind, applicationJSONLabel, newQuota())
			if err := flattenJSON(text, d); err != nil {
				return nil, fmt.Errorf("from %s: %w", from.source(name), err)
			}
			return d, nil
		}
	}
	return nil, nil
}

const applicationJSONLabel = "SPRING_APPLICATION_JSON"

// flattenJSON puts the leaves of a JSON object. Numbers keep their spelling.
func flattenJSON(text string, d *document) error {
	if len(text) > maxJSON {
		return ErrTooLarge
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return malformedJSON(err)
	}
	flattenJSONMap("", root, d)
	return d.quota.err()
}

func flattenJSONMap(prefix string, m map[string]any, d *document) {
	for _, k := range sortedKeys(m) {
		if len(k) > maxKey {
			d.quota.over = true
			return
		}
		flattenJSONValue(prefix+k, m[k], d)
	}
}

func flattenJSONValue(name string, v any, d *document) {
	if len(name) > maxKey {
		d.quota.over = true
	}
	if d.quota.over {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		flattenJSONMap(name+".", v, d)
	case []any:
		if len(v) > maxElements {
			d.quota.over = true
			return
		}
		for i, e := range v {
			flattenJSONValue(indexed(name, i), e, d)
		}
	case nil: // a null is no value: the next source is asked
	case json.Number:
		d.put(name, v.String())
		if strings.ContainsAny(v.String(), ".eE") {
			d.put(name, javaFloat(v.String()))
			d.floats[name] = true
		}
	default:
		d.put(name, fmt.Sprint(v))
	}
}
