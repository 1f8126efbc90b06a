package properties

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestParseYAML(t *testing.T) {
	docs, err := ParseYAML([]byte("a: {b: [1, {c: 2}], 3: x, on: y, '[q]': z}\n---\n---\n- 1\n---\nd:\n"), "f", NewQuota())
	require.NoError(t, err)
	require.Equal(t, []map[string]string{
		{"a.b[0]": "1", "a.b[1].c": "2", "a[3]": "x", "a[true]": "y", "a[q]": "z"}, {"d": ""},
	}, valuesOf(docs))
}

func TestResolveScalar(t *testing.T) {
	for text, want := range map[string]string{
		"010": "8", "0x1F": "31", "0b11": "3", "1_000": "1000", "1:30": "90", "190:20:30": "685230", "-0": "0", "+5": "5",
		"08": "08", "1:60": "1:60", "01:30": "01:30", "0": "0", "0x": "0x", "20s": "20s", "yes": "true", "OFF": "false", "oN": "oN",
		"~": "", "1.5": "1.5", "99999999999999999999": "99999999999999999999", "-1:30": "-90", "1__0": "10", "": "",
	} {
		got, _ := resolveScalar(&yaml.Node{Kind: yaml.ScalarNode, Value: text})
		require.Equal(t, want, got, text)
		quoted, isString := resolveScalar(&yaml.Node{Kind: yaml.ScalarNode, Value: text, Style: yaml.SingleQuotedStyle})
		require.Equal(t, text, quoted)
		require.True(t, isString)
	}
}

// Files that are small and would become huge end in an error, soon.
func TestYAMLBombs(t *testing.T) {
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	merges := "m0: &m0 {a: 1, b: 2, c: 3}\n"
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
		merges += fmt.Sprintf("m%d: &m%d {<<: [%s]}\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*m%d,", i-1), 9), ","))
	}
	tests := map[string]string{
		"billion laughs":   laughs,
		"merges of merges": merges,
		"cycle":            "a: &a\n  b: *a\n",
		"cycle of merges":  "a: &a\n  <<: *a\n  c: 1\n",
		"deep flow":        strings.Repeat("[", 50_000),
		"deep mappings":    deepMappings(500),
		"documents":        strings.Repeat("---\na: 1\n", MaxConfigDocs+10),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			start, before := time.Now(), jvmtest.Allocated()
			_, err := ParseYAML([]byte(text), "f", NewQuota())
			require.Error(t, err)
			require.Less(t, time.Since(start), 20*time.Second)
			require.Less(t, jvmtest.Allocated()-before, uint64(400<<20))
		})
	}
}

func deepMappings(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func FuzzParseYAML(f *testing.F) {
	m := mutate.Into(f)
	m.Add("a: &x [1, {b: *x}]\n---\nserver: {port: 0x10, <<: {c: d}}\n")
	m.Add("a:\n  - b\n  -\n? x\n: y\n")
	m.Fuzz(func(t *testing.T, text string) {
		docs, err := ParseYAML([]byte(text), "f", NewQuota())
		if err != nil {
			return
		}
		for _, d := range docs {
			require.NotEmpty(t, d.Names)
			require.LessOrEqual(t, len(d.Names), maxYAMLNodes)
		}
	})
}
