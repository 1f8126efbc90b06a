package examine

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// BootstrapClass is a standalone Tomcat's main class.
const BootstrapClass = "org.apache.catalina.startup.Bootstrap"

// bootstrap finds a standalone Tomcat's command line: what stands in front of
// its main class and behind it. The class's name is searched for instead of
// parsing the launcher's options, which jsvc has of its own.
func bootstrap(args []string) (options, arguments []string, ok bool) {
	for i, arg := range args {
		switch {
		case i == 0:
		case arg == BootstrapClass:
			return args[1:i], args[i+1:], true
		case args[i-1] == "-jar":
			if path.Base(arg) == "bootstrap.jar" {
				return args[1:i], args[i+1:], true
			}
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// bootstrapped finds a Tomcat whose main class stands in an @file: the JVM says
// itself what it runs (sun.rt.javaCommand).
func (t *target) bootstrapped() (arguments []string, ok bool) {
	if t.jvm == nil || len(t.args) == 0 {
		return nil, false
	}
	words := strings.Fields(t.jvm.JavaCommand)
	if len(words) == 0 || words[0] != BootstrapClass {
		return nil, false
	}
	return words[1:], true
}

// maxVMArgs is PerfMaxStringConstLength without its final NUL: what a JVM keeps of
// java.rt.vmArgs.
const maxVMArgs = 1023

// systemProperties are the -D of a JVM in the order in which it applies them,
// the last of a name counts (Arguments::parse): JAVA_TOOL_OPTIONS, the command
// line with JDK_JAVA_OPTIONS in front, _JAVA_OPTIONS. vmArgs, the JVM's own list
// of them all, fills in what came from elsewhere (@files); its words cannot be
// distinguished from their spaces, so it says nothing about properties already known.
func systemProperties(options []string, env map[string]string, vmArgs string) map[string]catalina.Property {
	out := map[string]catalina.Property{}
	add := func(words []string, suffix string, replace bool) {
		for _, word := range words {
			name, text, ok := strings.Cut(strings.TrimPrefix(word, "-D"), "=")
			if !ok || !strings.HasPrefix(word, "-D") {
				continue
			}
			if _, known := out[name]; known && !replace {
				continue
			}
			out[name] = catalina.Property{Text: text, Kind: model.SourceProperty, Source: "-D" + name + suffix}
		}
	}
	for _, name := range []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"} {
		add(launch.SplitOptions(env[name]), " in "+name, true)
	}
	add(options, "", true)
	add(launch.SplitOptions(env["_JAVA_OPTIONS"]), " in _JAVA_OPTIONS", true)
	fromVM := strings.Fields(vmArgs)
	if len(vmArgs) >= maxVMArgs && len(fromVM) > 0 {
		fromVM = fromVM[:len(fromVM)-1] // it may be cut
	}
	slices.Reverse(fromVM) // the last one counts
	add(fromVM, " among the JVM's arguments", false)
	return out
}

// maxNumbers bounds the numbers of one command line.
const maxNumbers = 64

// numbersIn takes the numbers out of a command line.
func numbersIn(args []string) (out []uint16) {
	for _, arg := range args {
		for word := range strings.FieldsFuncSeq(arg, func(r rune) bool { return r < '0' || r > '9' }) {
			if n, err := strconv.ParseUint(word, 10, 16); err == nil && n > 0 && len(out) < maxNumbers {
				out = append(out, uint16(n))
			}
		}
	}
	return out
}

// jvmPorts are the ports that the JVM's options open for itself: of a debugger
// (jdwp's address) and of JMX. They are never a connector's.
func jvmPorts(options []string) map[uint16]bool {
	out := make(map[uint16]bool)
	add := func(text string) {
		if port, err := strconv.ParseUint(text[strings.LastIndexByte(text, ':')+1:], 10, 16); err == nil && port > 0 {
			out[uint16(port)] = true
		}
	}
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		switch {
		case name == "-agentlib:jdwp" || strings.HasPrefix(name, "-Xrunjdwp:"):
			_, address, _ := strings.Cut(o, "address=")
			address, _, _ = strings.Cut(address, ",")
			add(address)
		case name == "-Dcom.sun.management.jmxremote.port" || name == "-Dcom.sun.management.jmxremote.rmi.port":
			add(value)
		}
	}
	return out
}
