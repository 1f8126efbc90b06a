package properties

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func resolverOf(values map[string]string) *Resolver {
	return &Resolver{Escapes: true, Lookup: func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}}
}

func TestResolve(t *testing.T) {
	r := resolverOf(map[string]string{
		"a": "1", "b": "${a}2", "stage": "eu", "port.eu": "8", "loop": "${pool}", "pool": "${loop}", "x:y": "whole", "empty": "",
	})
	for text, want := range map[string]string{
		"plain": "plain", "${a}": "1", "${b}${a}": "121", "${none}": "${none}", "${none:d}": "d", "${none:}": "",
		"${none:${a}}": "1", "${none:${nope:z}}": "z", "${port.${stage}}": "8", "${x:y}": "whole", "${a": "${a",
		"${none:{x}}": "{x}", "${empty:d}": "", `\${a}`: "${a}", "$a {b} ${a}": "$a {b} 1", "${none:a:b}": "a:b", "${}": "${}",
		// A default that is not used is not read.
		"${a:${random.int}}": "1", "${a:${loop}}": "1", "${a:x${none:${loop}}}": "1", "${${none:a}:${random.int}}": "1",
		// What the two generations of Spring's parser agree on.
		"${none:${a}:${none:q}}": "1:q", "${none:a${a}:b}": "a1:b", "${${none:o}:d}": "d", "${none:${none2:a:b}}": "a:b", "${:d}": "d",
	} {
		got, err := r.Resolve(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"${loop}", "${none:${loop}}"} {
		_, err := r.Resolve(text)
		require.ErrorIs(t, err, ErrCircular, text)
	}
	for _, text := range []string{"${random.int(10)}", "${none:${random.int}}", "${random.int:5}", "${none:a${random.uuid}}"} {
		_, err := r.Resolve(text)
		require.ErrorIs(t, err, ErrRandom, text)
	}
}

// A few hundred bytes that would grow without end are cut off.
func TestResolveBounded(t *testing.T) {
	values := map[string]string{"v0": strings.Repeat("x", 100)}
	names := "abcdefghijklmnopqrstuvwxyz"
	values["a"] = strings.Repeat("${v0}", 10)
	for i := 1; i < len(names); i++ {
		values[names[i:i+1]] = strings.Repeat("${"+names[i-1:i]+"}", 10)
	}
	_, err := resolverOf(values).Resolve("${z}")
	require.ErrorIs(t, err, bounded.ErrTooLarge)

	_, err = resolverOf(nil).Resolve(strings.Repeat("${a:", 5000) + strings.Repeat("}", 5000))
	if err != nil {
		require.ErrorIs(t, err, bounded.ErrTooLarge)
	}
}

func FuzzResolve(f *testing.F) {
	m := mutate.Into(f)
	m.Add("${a:${b}}", "${c}", "x")
	m.Add(`\${a}`, "${b}", "${a}")
	m.Fuzz(func(t *testing.T, text, a, b string) {
		got, err := resolverOf(map[string]string{"a": a, "b": b}).Resolve(text)
		if err == nil {
			require.LessOrEqual(t, len(got), max(len(text), maxPlaceholderText)+len(a)+len(b))
		}
	})
}
