package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Arguments is the document of the --name=value arguments
// (SimpleCommandLinePropertySource). A repeated option's values are joined.
func Arguments(args []string) *properties.Document {
	d := properties.New(model.SourceArgument, "arguments", properties.NewQuota())
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
		d.Put(name, value)
	}
	for name := range d.Values {
		d.Values[name] = strings.Join(values[name], ",")
	}
	return d
}

// Variables is the document of the environment's variables.
func Variables(p *Process) *properties.Document {
	d := properties.New(model.SourceEnv, "environment", properties.NewQuota())
	d.Env = true
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		d.Put(name, p.Env[name])
	}
	return d
}

// SystemProperties is the document of the -D options in force; the last one of
// a name counts. When the environment could not be read, the options that came
// from it are still in java.rt.vmArgs.
//
// A JVM keeps no more of it than PerfMaxStringConstLength bytes, 1024 by
// default: the last option of a longer text may be cut.
func SystemProperties(p *Process, l *Command) *properties.Document {
	d := properties.New(model.SourceProperty, "system properties", properties.NewQuota())
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
func putOption(d *properties.Document, o option) {
	definition, ok := strings.CutPrefix(o.text, "-D")
	if !ok {
		return
	}
	name, value, _ := strings.Cut(definition, "=")
	d.Put(name, value)
	d.Notes[name] = o.where
}

// ApplicationJSON is the document of spring.application.json: the first of the
// arguments, the system properties and the environment that has it.
func ApplicationJSON(docs []*properties.Document) (*properties.Document, error) {
	for _, from := range docs {
		for _, name := range []string{"spring.application.json", "SPRING_APPLICATION_JSON"} {
			text, ok := from.Raw(name)
			if !ok || text == "" {
				continue
			}
			d := properties.New(from.Kind, properties.ApplicationJSONLabel, properties.NewQuota())
			if err := properties.FlattenJSON(text, d); err != nil {
				return nil, fmt.Errorf("from %s: %w", from.Source(name), err)
			}
			return d, nil
		}
	}
	return nil, nil
}
