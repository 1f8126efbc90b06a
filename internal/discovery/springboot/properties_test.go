package springboot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func valuesOf(docs []*document) []map[string]string {
	var out []map[string]string
	for _, d := range docs {
		out = append(out, d.values)
	}
	return out
}

func TestParseProperties(t *testing.T) {
	tests := map[string]struct {
		text string
		want []map[string]string
	}{
		"empty":        {"# nothing\n", nil},
		"documents":    {"a=1\n#---\nb=2\n!---\nc=3", []map[string]string{{"a": "1"}, {"b": "2"}, {"c": "3"}}},
		"continued":    {"a=1\\\n#---\nb=2", []map[string]string{{"a": "1#---", "b": "2"}}},
		"no expansion": {"a=${b}\nb=${a}", []map[string]string{{"a": "${b}", "b": "${a}"}}},
		"list":         {"p[]=x, y", []map[string]string{{"p[0]": "x", "p[1]": "y"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			docs, err := parseProperties([]byte(tt.text), "f", true, newQuota())
			require.NoError(t, err)
			require.Equal(t, tt.want, valuesOf(docs))
		})
	}
	docs, err := parseProperties([]byte("a=1\n#---\nb=2"), "f", false, newQuota())
	require.NoError(t, err)
	require.Equal(t, []map[string]string{{"a": "1", "b": "2"}}, valuesOf(docs))
}

func FuzzParseProperties(f *testing.F) {
	m := mutate.Into(f)
	m.Add("a=1\n#---\nb[]=2,3\\\n4\n! x\n\\u0041 : ${c}")
	m.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, strings.Count(text, "="), strings.Count(strings.Join(splitProperties(text), ""), "="))
		docs, err := parseProperties([]byte(text), "f", true, newQuota())
		if err != nil {
			return
		}
		for _, d := range docs {
			require.NotEmpty(t, d.names)
			for _, name := range d.names {
				_, ok := d.values[name]
				require.True(t, ok)
			}
		}
	})
}

func FuzzXMLProperties(f *testing.F) {
	m := mutate.Into(f)
	m.Add(`<properties><entry key="a">b</entry></properties>`)
	m.Fuzz(func(_ *testing.T, text string) { _, _ = parseXMLProperties([]byte(text), "f", newQuota()) })
}

func TestXMLPropertiesEntities(t *testing.T) {
	_, err := parseXMLProperties([]byte(`<!DOCTYPE p [<!ENTITY a "x">]><properties><entry key="k">&a;</entry></properties>`), "f", newQuota())
	require.Error(t, err)
}
