package properties

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func valuesOf(docs []*Document) []map[string]string {
	var out []map[string]string
	for _, d := range docs {
		out = append(out, d.Values)
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
			docs, err := Parse([]byte(tt.text), "f", true, NewQuota())
			require.NoError(t, err)
			require.Equal(t, tt.want, valuesOf(docs))
		})
	}
	docs, err := Parse([]byte("a=1\n#---\nb=2"), "f", false, NewQuota())
	require.NoError(t, err)
	require.Equal(t, []map[string]string{{"a": "1", "b": "2"}}, valuesOf(docs))
}

func FuzzParseProperties(f *testing.F) {
	m := mutate.Into(f)
	m.Add("a=1\n#---\nb[]=2,3\\\n4\n! x\n\\u0041 : ${c}")
	m.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, strings.Count(text, "="), strings.Count(strings.Join(splitProperties(text), ""), "="))
		docs, err := Parse([]byte(text), "f", true, NewQuota())
		if err != nil {
			return
		}
		for _, d := range docs {
			require.NotEmpty(t, d.Names)
			for _, name := range d.Names {
				_, ok := d.Values[name]
				require.True(t, ok)
			}
		}
	})
}

func FuzzXMLProperties(f *testing.F) {
	m := mutate.Into(f)
	m.Add(`<properties><entry key="a">b</entry></properties>`)
	m.Fuzz(func(_ *testing.T, text string) { _, _ = ParseXML([]byte(text), "f", NewQuota()) })
}

func TestXMLPropertiesEntities(t *testing.T) {
	_, err := ParseXML([]byte(`<!DOCTYPE p [<!ENTITY a "x">]><properties><entry key="k">&a;</entry></properties>`), "f", NewQuota())
	require.Error(t, err)
}
