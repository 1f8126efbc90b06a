package model

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"java":                         "java",
		"größe 接":                      "größe 接",
		"a\x1b[2Jb":                    `a\x1b[2Jb`,
		"a\x7f\n":                      `a\x7f\x0a`,
		"a\u009b31m":                   `a\u009b31m`,
		"a\u202egpj":                   `a\u202egpj`,
		"a\u2066b\u200b":               `a\u2066b\u200b`,
		"a\xff":                        `a\xff`,
		"a\xfe":                        `a\xfe`,
		`a\xff`:                        `a\\xff`,
		"a\uFFFD":                      "a\uFFFD",
		"a\U000e0041":                  `a\U000e0041`,
		"\xe2\x82":                     `\xe2\x82`,
		strings.Repeat("x", MaxName+1): strings.Repeat("x", MaxName) + "…",
	} {
		require.Equal(t, want, Escape(in), "%q", in)
	}
}

// A pass over what was escaped before changes nothing.
func TestPrintable(t *testing.T) {
	require.Equal(t, `a\x1bb`, Printable("a\x1bb"))
	require.Equal(t, `a\x1bb\\`, Printable(Escape("a\x1bb\\")))
}

// Whatever comes in, what comes out can be shown, and says which it was.
func FuzzEscape(f *testing.F) {
	m := mutate.Into(f)
	m.Add("java", "java\xff")
	m.Add("a\xff", "a\xfe")
	m.Add(`\xff`, "\xff")
	m.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{Escape(a), Printable(a)} {
			require.True(t, utf8.ValidString(s))
			require.False(t, strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }))
		}
		if a != b && len(a) < 20 && len(b) < 20 {
			require.NotEqual(t, Escape(a), Escape(b))
		}
	})
}
