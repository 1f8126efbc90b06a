package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recordingKeys are the names that a recording is written with, each with its type.
func recordingKeys(prefix string, t reflect.Type, above ...reflect.Type) (out []string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return recordingKeys(prefix, t.Elem(), above...)
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return recordingKeys(prefix+"[]", t.Elem(), above...)
	case t.Kind() == reflect.Map:
		return recordingKeys(prefix+"{}", t.Elem(), above...)
	case t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || t.PkgPath() == "net/netip":
		return []string{prefix + " " + t.Kind().String()}
	case slices.Contains(above, t): // Basis.Before is a listener, too
		return []string{prefix + " " + t.Name()}
	}
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported():
		case f.Anonymous && tag == "":
			out = append(out, recordingKeys(prefix, f.Type, append(above, t)...)...)
		default:
			out = append(out, recordingKeys(prefix+"."+cmp.Or(tag, f.Name), f.Type, append(above, t)...)...)
		}
	}
	return out
}

// isRenamed reports whether a key is read as another of today (see renamed).
func isRenamed(now []string, key string) bool {
	for _, names := range renamed() {
		for was, name := range names {
			if slices.Contains(now, strings.Replace(key, "."+was+" ", "."+name+" ", 1)) {
				return true
			}
		}
	}
	return false
}

// A frame is written with the names of the model's types. One that is removed there, or renamed and
// not in renamed, would be missing in the recordings of the version before, and in this test. New
// ones are added to the file by UPDATE=1.
func TestRecordingsOnlyGrow(t *testing.T) {
	const file = "testdata/recording.keys"
	var got []string
	for name, record := range map[string]reflect.Type{
		"header": reflect.TypeFor[Header](), "frame": reflect.TypeFor[Frame](), "tick": reflect.TypeFor[Tick](), "end": reflect.TypeFor[End](),
	} {
		got = append(got, recordingKeys(name, record)...)
	}
	slices.Sort(got)
	text, err := os.ReadFile(file)
	if os.Getenv("UPDATE") != "" {
		for _, key := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			require.True(t, key == "" || slices.Contains(got, key) || isRenamed(got, key), "%q is written by the version before", key)
		}
		text, err = []byte(strings.Join(got, "\n")+"\n"), nil
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	require.NoError(t, err)
	require.Equal(t, strings.Split(strings.TrimSpace(string(text)), "\n"), got)
}

// Recordings of versions before are read with the names that they were written with: whole frames,
// what has changed since, and the frame before that a verdict was judged by.
func TestNamesOfVersionsBefore(t *testing.T) {
	begin, err := Line{Begin: &Header{Schema: Schema}}.Encode()
	require.NoError(t, err)
	key, err := Line{Key: json.RawMessage(`{"Listener":{"Connections":{"Sampled":4096,"Error":55},"Basis":{"Before":{"Connections":{"Sampled":7}}}}}`)}.Encode()
	require.NoError(t, err)
	next, err := Line{Next: json.RawMessage(`{"Listener":{"Connections":{"Sampled":2048}}}`)}.Encode()
	require.NoError(t, err)
	gone, err := Line{Next: json.RawMessage(`{"Listener":{"Connections":{"Sampled":null}}}`)}.Encode()
	require.NoError(t, err)
	r, err := NewReader(bytes.NewReader(slices.Concat(begin, key, next, gone)))
	require.NoError(t, err)
	for _, want := range []int{4096, 2048, 0} {
		f, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want, f.Listener.Connections.Subset)
		require.Equal(t, 55, f.Listener.Connections.Error)
		require.Equal(t, 7, f.Listener.Basis.Before.Connections.Subset)
	}
}
