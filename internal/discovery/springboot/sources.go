package springboot

import (
	"fmt"
	"maps"
	"slices"
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
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
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
			putOption(d, o)
		}
	}
	for _, o := range l.options {
		putOption(d, o)
	}
	return d
}

// maxVMArgs is PerfMaxStringConstLength without its final NUL.
const maxVMArgs = 1023

// putOption puts a -D option.
func putOption(d *document, o option) {
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
