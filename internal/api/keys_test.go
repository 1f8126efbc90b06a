package api_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/api/plandoc"
)

// keys lists every field of a document by its path, with its type, and with
// what leaves it out. Lists are marked by [], maps by {}.
func keys(prefix string, t reflect.Type) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return keys(prefix, t.Elem())
	case t.Kind() == reflect.Slice:
		return keys(prefix+"[]", t.Elem())
	case t.Kind() == reflect.Map:
		return keys(prefix+"{}", t.Elem())
	case t.Kind() != reflect.Struct || t.PkgPath() == "time":
		return []string{prefix + " " + t.String()}
	}
	var out []string
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			out = append(out, keys(prefix, f.Type)...)
			continue
		}
		field := keys(prefix+"."+name, f.Type)
		if options != "" && len(field) == 1 {
			field[0] += " " + options
		} else if options != "" {
			out = append(out, prefix+"."+name+" "+options)
		}
		out = append(out, field...)
	}
	return out
}

// The fields are written down a second time here: a renamed or removed one
// breaks its readers, and this test. New ones are added to the file by UPDATE=1.
func TestDocumentsOnlyGrow(t *testing.T) {
	for name, document := range map[string]any{
		"snapshot":  api.Snapshot{},
		"plan":      plandoc.Plan{},
		"incidents": api.Incidents{},
		"incident":  api.Incident{},
	} {
		t.Run(name, func(t *testing.T) {
			golden, err := os.ReadFile(filepath.Join("testdata", name+".keys"))
			require.NoError(t, err)
			want := strings.Split(strings.TrimSpace(string(golden)), "\n")
			got := keys("", reflect.TypeOf(document))
			got = slices.DeleteFunc(got, func(key string) bool { return strings.HasPrefix(key, ".worst.") }) // a snapshot's listener
			slices.Sort(got)
			if os.Getenv("UPDATE") != "" { // takes in new ones; of the others each must be left
				require.Subset(t, got, want)
				want = got
				require.NoError(t, os.WriteFile(filepath.Join("testdata", name+".keys"), []byte(strings.Join(got, "\n")+"\n"), 0o644))
			}
			require.Equal(t, want, got)
		})
	}
}
