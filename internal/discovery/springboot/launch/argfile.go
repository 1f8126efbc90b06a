package launch

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// splitArgFile splits the text of a java @argfile into arguments, the way the
// launcher does (libjli args.c, JLI_PreprocessArg): separated by white space,
// "#" starts a comment at the beginning of an argument, single and double
// quotes keep white space, and inside quotes a backslash escapes \n, \r, \t, \f
// or joins the next line.
func splitArgFile(text string) []string {
	var (
		args  []string
		arg   strings.Builder
		begun bool
		quote byte
	)
	flush := func() {
		if begun {
			args = append(args, arg.String())
		}
		arg.Reset()
		begun = false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(text):
			i = unescapeArg(text, i+1, &arg)
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0 && (c == '\n' || c == '\r'):
			// An unclosed quote ends with its line.
			quote = 0
			flush()
		case quote != 0:
			arg.WriteByte(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case isArgSpace(c):
			flush()
		case c == '#' && !begun:
			i = lineEnd(text, i)
		default:
			begun = true
			arg.WriteByte(c)
		}
	}
	flush()
	return args
}

// unescapeArg handles the character at i, which follows a backslash inside
// quotes, and returns the index of the last byte it used.
func unescapeArg(text string, i int, arg *strings.Builder) int {
	switch c := text[i]; c {
	case 'n':
		arg.WriteByte('\n')
	case 'r':
		arg.WriteByte('\r')
	case 't':
		arg.WriteByte('\t')
	case 'f':
		arg.WriteByte('\f')
	case '\n', '\r':
		// Joined lines: the next line's leading white space goes too.
		for i+1 < len(text) && isArgSpace(text[i+1]) {
			i++
		}
	default:
		arg.WriteByte(c)
	}
	return i
}

// SplitOptions splits JAVA_TOOL_OPTIONS, _JAVA_OPTIONS (Arguments::
// parse_options_buffer) and JDK_JAVA_OPTIONS (JLI_AddArgsFromEnvVar): white
// space separates, quotes keep it and are taken away, there are no escapes.
func SplitOptions(text string) []string {
	var (
		args  []string
		arg   strings.Builder
		begun bool
		quote byte
	)
	for i := range len(text) {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			arg.WriteByte(c)
		case c == '"' || c == '\'':
			quote, begun = c, true
		case isArgSpace(c):
			if begun {
				args = append(args, arg.String())
			}
			arg.Reset()
			begun = false
		default:
			begun = true
			arg.WriteByte(c)
		}
	}
	if begun {
		args = append(args, arg.String())
	}
	return args
}

func isArgSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

// lineEnd is the index of the line's end at or after i.
func lineEnd(text string, i int) int {
	for i < len(text) && text[i] != '\n' && text[i] != '\r' {
		i++
	}
	return i
}

// expander replaces the @files among the launcher's own words, also one that is
// an option's value, up to the main class, once (libjli args.c,
// JLI_PreprocessArg and checkArg).
type expander struct {
	out     []option
	missing []model.Unavailable
	option  string // whose value comes next
	started bool   // the main class has been seen, or what stands for it
	off     bool   // --disable-@files
}

// expand returns the words as the launcher parses them.
func (l *Command) expand(p *Process, words []option) []option {
	x := &expander{}
	for _, w := range words {
		switch {
		case x.started || x.off || len(w.text) < 2 || w.text[0] != '@' || len(x.out) > maxWords:
			x.add(w)
		case w.text[1] == '@':
			w.text = w.text[1:]
			x.add(w)
		default:
			x.addFile(p, w)
		}
	}
	l.Missing = append(l.Missing, x.missing...)
	return x.out
}

// addFile adds the words of an argument file. One that cannot be read stays
// where it is a value, so that no other word takes its place.
func (x *expander) addFile(p *Process, w option) {
	path := w.text[1:]
	data, err := p.Read(path, maxArgFile)
	if err != nil {
		x.missing = append(x.missing, model.Unavailable{What: "argument file @" + path, Why: Reason(err)})
		if x.option != "" {
			x.add(w)
		}
		return
	}
	where := "@" + path
	if w.where != "" {
		where = w.where + ", " + where
	}
	for _, word := range splitArgFile(string(data)) {
		if len(x.out) > maxWords {
			break
		}
		x.add(option{word, where})
	}
}

// add takes a word and notes whether the launcher still expands the next one.
func (x *expander) add(w option) {
	x.out = append(x.out, w)
	switch {
	case x.started:
	case strings.HasPrefix(w.text, "-"):
		x.started = strings.HasPrefix(w.text, "--module=")
		x.off = x.off || w.text == "--disable-@files"
		x.option = ""
		if takesValue(w.text) {
			x.option = w.text
		}
	default:
		x.started = x.option == "" || x.option == "-jar" || x.option == "-m" || x.option == "--module"
		x.option = ""
	}
}

// takesValue names the launcher's options whose value is the next word
// (libjli java.c, IsWhiteSpaceOption).
func takesValue(w string) bool {
	switch w {
	case "-jar", "-m", "--module", "-cp", "-classpath", "--class-path", "-p", "--module-path",
		"--upgrade-module-path", "--add-modules", "--limit-modules", "--add-exports", "--add-opens",
		"--add-reads", "--patch-module", "--describe-module", "-d", "--source", "--enable-native-access",
		"--sun-misc-unsafe-memory-access", "--illegal-native-access":
		return true
	}
	return false
}
