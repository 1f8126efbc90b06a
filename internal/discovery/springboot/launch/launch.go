// Package launch is what a JVM was started with: its command line taken apart the way the
// java launcher does, with argument files and the options of the environment, and as
// property sources. Its Process is the one way to the files of the process.
package launch

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/version"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// option is one option of the VM and its position.
type option struct {
	text  string
	where string // "" for the command line, else "JAVA_TOOL_OPTIONS", an argument file, …
}

// Command is a java command line taken apart.
type Command struct {
	options   []option // VM options in the order in which the VM applies them
	ClassPath []string
	Modules   []string // --module-path
	Jar       string   // -jar
	Main      string   // main class, or module[/class]
	Args      []string // the application's own arguments
	Missing   []model.Unavailable
}

// Parse takes the command line apart the way the java launcher does:
// options up to -jar FILE, -m MODULE or the first word that is not an option
// (the main class); what follows belongs to the application.
func Parse(p *Process) *Command {
	l := &Command{}
	if p.EnvKnown {
		l.addOptions(SplitOptions(p.Env["JAVA_TOOL_OPTIONS"]), "JAVA_TOOL_OPTIONS")
		l.words(p, asWords(SplitOptions(p.Env["JDK_JAVA_OPTIONS"]), "JDK_JAVA_OPTIONS"))
	}
	if len(p.Args) > 0 {
		l.words(p, asWords(p.Args[1:], ""))
	}
	l.optionFiles(p)
	l.limitOptions(len(p.Args))
	if p.EnvKnown {
		l.addOptions(SplitOptions(p.Env["_JAVA_OPTIONS"]), "_JAVA_OPTIONS")
		if l.ClassPath == nil && p.Env["CLASSPATH"] != "" && l.Jar == "" {
			l.ClassPath = strings.Split(p.Env["CLASSPATH"], ":")
		}
	}
	if l.ClassPath == nil && l.Jar == "" {
		l.ClassPath = []string{"."}
	}
	return l
}

// limitOptions cuts what no real command line has.
func (l *Command) limitOptions(words int) {
	if words > maxWords {
		l.Missing = append(l.Missing, model.Unavailable{What: "command line", Why: "its words beyond the first 20,000 are left out"})
	}
	if len(l.options) > maxWords {
		l.options = l.options[:maxWords]
		l.Missing = append(l.Missing, model.Unavailable{What: "options of the VM", Why: "those beyond the first 20,000 are left out"})
	}
}

func asWords(words []string, where string) []option {
	words = words[:min(len(words), maxWords)]
	out := make([]option, len(words))
	for i, w := range words {
		out[i] = option{w, where}
	}
	return out
}

func (l *Command) addOptions(words []string, where string) {
	l.options = append(l.options, asWords(words, where)...)
}

// words reads options up to the main class.
func (l *Command) words(p *Process, words []option) {
	words = l.expand(p, words)
	for i := 0; i < len(words); i++ {
		if l.started() {
			l.Args = append(l.Args, words[i].text)
			continue
		}
		i += l.word(words[i:])
	}
}

// started says that the main class has been seen.
func (l *Command) started() bool { return l.Jar != "" || l.Main != "" }

// word takes the first of words and says how many further ones it used.
func (l *Command) word(words []option) int {
	w := words[0].text
	name, value, joined := strings.Cut(w, "=")
	used := 0
	if !joined && takesValue(w) && len(words) > 1 {
		value, used = words[1].text, 1
	}
	switch name {
	case "-jar":
		l.Jar = value
	case "-m", "--module":
		l.Main = value
	case "-cp", "-classpath", "--class-path":
		l.ClassPath = strings.Split(value, ":")
	case "-p", "--module-path":
		l.Modules = strings.Split(value, ":")
	default:
		if !strings.HasPrefix(w, "-") {
			l.Main = w
			return 0
		}
		l.options = append(l.options, words[0])
	}
	return used
}

// optionFiles inserts the options of -XX:VMOptionsFile, which the VM reads at
// the position of that option.
func (l *Command) optionFiles(p *Process) {
	var out []option
	for _, o := range l.options {
		path, ok := strings.CutPrefix(o.text, "-XX:VMOptionsFile=")
		if len(out) > maxWords {
			break
		}
		if !ok {
			out = append(out, o)
			continue
		}
		data, err := p.Read(path, maxArgFile)
		if err != nil {
			l.Missing = append(l.Missing, model.Unavailable{What: "VM options file " + path, Why: Reason(err)})
			continue
		}
		out = append(out, asWords(SplitOptions(string(data)), path)...)
	}
	l.options = out
}

// JavaVersion is the JVM's version: as it says itself, or from the "release"
// file of the JDK that the executable, else the command line, lies in.
func JavaVersion(p *Process) string {
	if v := version.Plausible(p.JavaVersion); v != "" || len(p.Args) == 0 {
		return v
	}
	for _, java := range []string{p.Exe, p.Args[0]} {
		home, ok := strings.CutSuffix(java, "/bin/java")
		if !ok {
			continue
		}
		data, err := p.Read(strings.TrimSuffix(home, "/jre")+"/release", maxRelease)
		if err != nil {
			continue
		}
		if v := version.Plausible(releasedVersion(string(data))); v != "" {
			return v
		}
	}
	return ""
}

func releasedVersion(release string) string {
	for line := range strings.Lines(release) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "JAVA_VERSION="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}
