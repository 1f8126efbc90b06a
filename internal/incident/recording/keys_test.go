package recording

import (
	"bytes"
	"encoding"
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// keysOf are the names that a recording is written with, each with its type.
func keysOf(prefix string, t reflect.Type, above ...reflect.Type) (out []string) {
	l := layouts()[t]
	switch {
	case t.Kind() == reflect.Pointer:
		return keysOf(prefix, t.Elem(), above...)
	case t.Kind() == reflect.Map:
		return keysOf(prefix+"{}", t.Elem(), above...)
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t != reflect.TypeFor[json.RawMessage]():
		return keysOf(prefix+"[]", t.Elem(), above...)
	case l == nil:
		return []string{prefix + " " + t.Kind().String()}
	case slices.Contains(above, t): // Basis.Before is a listener, too
		return []string{prefix + " " + t.Name()}
	}
	for _, f := range l.fields {
		out = append(out, keysOf(prefix+"."+f.name, t.FieldByIndex(f.index).Type, append(above, t)...)...)
	}
	return out
}

// A name that was written once is read for ever. New ones are added to the file by UPDATE=1.
func TestRecordingsOnlyGrow(t *testing.T) {
	const file = "testdata/recording.keys"
	got := keysOf("frame", reflect.TypeFor[Frame]())
	for _, l := range []any{Header{}, Tick{}, End{}} {
		got = append(got, keysOf(strings.ToLower(reflect.TypeOf(l).Name()), reflect.TypeOf(l))...)
	}
	slices.Sort(got)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	was := strings.Split(strings.TrimSpace(string(text)), "\n")
	if os.Getenv("UPDATE") != "" {
		require.Subset(t, got, was, "older recordings have it")
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644))
		return
	}
	require.Equal(t, was, got)
}

// nameless are the fields of a struct that a recording has no word on, and the words on fields that it has not.
func nameless(n named) (out []string) {
	words := strings.Fields(n.fields)
	for i, word := range words {
		words[i], _, _ = strings.Cut(strings.TrimPrefix(word, "-"), "=")
		if _, ok := n.t.FieldByName(words[i]); !ok {
			out = append(out, words[i])
		}
	}
	for f := range n.t.Fields() {
		if !slices.Contains(words, f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}

// unnamed are the structs within a type that have no layout, and would be written with the names of their fields.
func unnamed(t reflect.Type, seen map[reflect.Type]bool) (out []string) {
	p := reflect.PointerTo(t)
	switch {
	case seen[t]:
		return nil
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map:
		return unnamed(t.Elem(), seen)
	case t.Kind() != reflect.Struct || p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return nil
	case layouts()[t] == nil:
		return []string{t.String()}
	}
	seen[t] = true
	for _, f := range layouts()[t].fields {
		out = append(out, unnamed(t.FieldByIndex(f.index).Type, seen)...)
	}
	return out
}

// A field of the model that is renamed keeps its name in recordings ("New=Old"), one that is added gets
// one, or "-" where no verdict depends on it.
func TestRecordingsHaveAWordOnEachField(t *testing.T) {
	for _, n := range modelNames() {
		require.Empty(t, nameless(n), "%s: give each a word in modelNames", n.t)
	}
	require.Empty(t, unnamed(reflect.TypeFor[Line](), make(map[reflect.Type]bool)), "give each its line in modelNames")
	require.Equal(t, []string{"model.Snapshot"}, unnamed(reflect.TypeFor[[]*model.Snapshot](), make(map[reflect.Type]bool)))
	type renamed struct{ Now, Added, Other int }
	require.Equal(t, []string{"Was", "Now", "Added"}, nameless(of[renamed]("Was -Other")))
	require.Equal(t, []string{"Added"}, nameless(of[renamed]("Now=Was -Other")))
}

// The numbers that stand for these, and their order in lists, are the format's too.
func TestNumbersStay(t *testing.T) {
	list := func(n int, name func(int) string) (out []string) {
		for i := range n {
			out = append(out, name(i))
		}
		return out
	}
	require.Equal(t, "ok warning saturated losing down", strings.Join(list(int(model.NumStatuses), func(i int) string { return model.Status(i).String() }), " "))
	require.Equal(t, "waiting in_service sending idle client_closed streaming unclassified", strings.Join(list(int(model.NumPhases), func(i int) string { return model.Phase(i).String() }), " "))
	require.Equal(t, "connected delayed gave_up stalled refused reset half_open undecided", strings.Join(list(int(model.NumClientOutcomes), func(i int) string { return model.ClientOutcome(i).String() }), " "))
}

// random sets all of a value that is written, at some depth of what points to itself.
func random(r *rand.Rand, v reflect.Value, depth int) {
	l := layouts()[v.Type()]
	switch k := v.Kind(); {
	case v.Type() == reflect.TypeFor[model.Status]():
		v.SetInt(r.Int64N(int64(model.NumStatuses)))
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1e10), r.Int64N(1e9)).UTC()))
	case v.Type() == reflect.TypeFor[netip.AddrPort]():
		v.Set(reflect.ValueOf(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(256))}), uint16(r.Uint32()))))
	case v.Type() == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{10, byte(r.IntN(256))})))
	case l != nil:
		for _, f := range l.fields {
			random(r, v.FieldByIndex(f.index), depth)
		}
	case k == reflect.Pointer && depth > 0:
		v.Set(reflect.New(v.Type().Elem()))
		if r.IntN(4) > 0 {
			random(r, v.Elem(), depth-1)
		}
	case k == reflect.Slice && r.IntN(4) > 0:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		fallthrough
	case k == reflect.Array:
		for i := range v.Len() {
			random(r, v.Index(i), depth)
		}
	case k == reflect.Map && r.IntN(4) > 0:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"a", "<b>"}[:r.IntN(3)] {
			entry := reflect.New(v.Type().Elem()).Elem()
			random(r, entry, depth)
			v.SetMapIndex(reflect.ValueOf(key), entry)
		}
	case r.IntN(3) == 0: // zero
	case k == reflect.String:
		v.SetString("\"<\u2028" + strconv.Itoa(r.IntN(1000)))
	case k == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(r.Int64() >> (64 - v.Type().Bits()))
	case v.CanUint():
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits()))
	case v.CanFloat():
		v.SetFloat(r.NormFloat64())
	}
}

// What is written is read: whatever has changed since the frame before, nil and empty, zero and none.
func TestRandomFramesAreReadAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var e Encoder
	text, err := Line{Begin: &Header{Schema: Schema}}.Encode()
	require.NoError(t, err)
	var want []*Frame
	for range 200 {
		f := new(Frame)
		if r.IntN(3) == 0 && len(want) > 0 {
			*f = *want[len(want)-1]
		}
		random(r, reflect.ValueOf(&f.Listener).Elem(), 4)
		random(r, reflect.ValueOf(&f.Counted).Elem(), 4)
		line, err := e.Frame(f)
		require.NoError(t, err)
		text = append(text, line...)
		want = append(want, f)
	}
	reader, err := NewReader(bytes.NewReader(text))
	require.NoError(t, err)
	for _, f := range want {
		got, err := reader.Next()
		require.NoError(t, err)
		require.Equal(t, f, got)
	}
	require.Zero(t, reader.Damaged)
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
