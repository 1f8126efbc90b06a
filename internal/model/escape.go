package model

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the most bytes of a name that another process chose (command,
// file, property, executor); what is beyond is cut and marked.
const MaxName = 256

// Escape makes a name that another process chose safe to show: what is no
// printable character (C0 and C1 controls, DEL, bidirectional marks, bytes that
// are no UTF-8) becomes \x1b or \u202e, and a backslash \\, so that two names
// that differ stay different. It is done once, where the name is read.
func Escape(s string) string { return cut(escape(s, true), MaxName) }

// Printable is Escape without the backslash and without the bound, for text
// that may have been escaped before.
func Printable(s string) string { return escape(s, false) }

func escape(s string, backslash bool) string {
	if clean(s, backslash) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			hex(&b, `\x`, uint64(s[0]), 2)
		case r == '\\' && backslash:
			b.WriteString(`\\`)
		case unicode.IsPrint(r):
			b.WriteString(s[:n])
		case r < utf8.RuneSelf:
			hex(&b, `\x`, uint64(r), 2)
		case r < 1<<16:
			hex(&b, `\u`, uint64(r), 4)
		default:
			hex(&b, `\U`, uint64(r), 8)
		}
		s = s[n:]
	}
	return b.String()
}

func clean(s string, backslash bool) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || r == '\\' && backslash
	})
}

func hex(b *strings.Builder, prefix string, v uint64, digits int) {
	text := strconv.FormatUint(v, 16)
	b.WriteString(prefix + strings.Repeat("0", digits-len(text)) + text)
}

// cut keeps whole characters of at most limit bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
