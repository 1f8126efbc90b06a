package springboot

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

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
func (l *launch) expand(p *Process, words []option) []option {
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
	l.missing = append(l.missing, x.missing...)
	return x.out
}

// addFile adds the words of an argument file. One that cannot be read stays
// where it is a value, so that no other word takes its place.
func (x *expander) addFile(p *Process, w option) {
	path := w.text[1:]
	data, err := p.read(path, maxArgFile)
	if err != nil {
		x.missing = append(x.missing, model.Unavailable{What: "argument file @" + path, Why: reason(err)})
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
