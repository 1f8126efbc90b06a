package launch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestSplitArgFile(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"empty":                  {"", nil},
		"white space":            {" a\tb\n\nc\r\n\fd ", []string{"a", "b", "c", "d"}},
		"comments":               {"# one\na # two\n#three\nb#c", []string{"a", "b#c"}},
		"quotes":                 {`"a b" 'c "d"' e"f g"h`, []string{"a b", `c "d"`, "ef gh"}},
		"empty quotes":           {`"" ''`, []string{"", ""}},
		"escapes":                {`"a\tb\\c\"d\n\q"`, []string{"a\tb\\c\"d\nq"}},
		"no escapes outside":     {`C:\dir\x`, []string{`C:\dir\x`}},
		"joined lines":           {"\"a\\\n   b\"", []string{"ab"}},
		"unclosed quote":         {"'a b\nc", []string{"a b", "c"}},
		"unclosed at the end":    {`"a b`, []string{"a b"}},
		"backslash at the end":   {`"a\`, []string{`a\`}},
		"hash inside quotes":     {`"#a" '#b'`, []string{"#a", "#b"}},
		"options of a real file": {"-cp \"/app/classes:/app/lib/*\"\n-Xmx1g\n", []string{"-cp", "/app/classes:/app/lib/*", "-Xmx1g"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, splitArgFile(tt.text)) })
	}
}

func TestSplitOptions(t *testing.T) {
	require.Equal(t, []string{"-Da=b c", `-Dx="y`, "", `\`}, SplitOptions(`"-Da=b c" '-Dx="y' "" \`))
	require.Nil(t, SplitOptions(" \t\n"))
}

// quoteArg writes an argument so that splitArgFile reads it back.
func quoteArg(arg string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(arg) + `"`
}

func FuzzSplitArgFile(f *testing.F) {
	m := mutate.Into(f)
	m.Add("-Dserver.port=1 # x\n'a b' \"c\\\n d\"")
	m.Fuzz(func(t *testing.T, text string) {
		var quoted []string
		args := splitArgFile(text)
		for _, arg := range args {
			quoted = append(quoted, quoteArg(arg))
		}
		require.Equal(t, args, splitArgFile(strings.Join(quoted, "\n")))
	})
}

func FuzzSplitOptions(f *testing.F) {
	m := mutate.Into(f)
	m.Add(`-Da=b "c d" 'e`)
	m.Fuzz(func(t *testing.T, text string) {
		total := 0
		for _, arg := range SplitOptions(text) {
			total += len(arg)
		}
		require.LessOrEqual(t, total, len(text))
	})
}

func TestSplitOptionsOfVariables(t *testing.T) {
	for text, want := range map[string][]string{
		"":                   nil,
		"  ":                 nil,
		"a b\tc\nd":          {"a", "b", "c", "d"},
		`-Da="b c" d`:        {"-Da=b c", "d"},
		`'a "b"' ""`:         {`a "b"`, ""},
		`"never closed`:      {"never closed"},
		`a\ b`:               {`a\`, "b"},
		"-Dä=ö \u00a0":       {"-Dä=ö", "\u00a0"},
		"-XX:+UseG1GC  -Dx=": {"-XX:+UseG1GC", "-Dx="},
	} {
		require.Equal(t, want, SplitOptions(text), "%q", text)
	}
}
