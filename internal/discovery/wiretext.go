package discovery

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func knownKind(k model.SourceKind) bool {
	switch k {
	case model.SourceDefault, model.SourceFile, model.SourceEnv, model.SourceArgument, model.SourceProperty:
		return true
	}
	return false
}

func cleanList(list []model.Unavailable) []model.Unavailable {
	out := make([]model.Unavailable, 0, len(list))
	for _, u := range list {
		out = append(out, model.Unavailable{What: clean(u.What), Why: clean(u.Why), How: clean(u.How)})
	}
	return out
}

// clean is a text that a person can be shown: valid UTF-8 of at most maxText
// bytes, without control characters and those that turn the direction of writing.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
	if len(text) <= maxText {
		return text
	}
	cut := maxText - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
