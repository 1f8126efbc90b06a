package recording

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Some bytes can repeat a large frame: all frames together are bounded.
func TestFramesAreBounded(t *testing.T) {
	begin, err := Line{Begin: &Header{Schema: Schema}}.Encode()
	require.NoError(t, err)
	key, err := Line{Key: encoded(t, Frame{Listener: model.Listener{Verdict: model.Verdict{Summary: strings.Repeat("x", 900_000)}}})}.Encode()
	require.NoError(t, err)
	next, err := Line{Next: json.RawMessage("{}")}.Encode()
	require.NoError(t, err)
	r, err := NewReader(bytes.NewReader(slices.Concat(begin, key, bytes.Repeat(next, 20))))
	require.NoError(t, err)
	r.weight = maxFrameSum - 2_500_000
	for range 3 {
		_, err = r.Next()
		require.NoError(t, err)
	}
	_, err = r.Next()
	require.ErrorIs(t, err, ErrLarge)
}

// What a real frame takes is far below its bound.
func TestRealFramesAreBelowTheBound(t *testing.T) {
	document, err := parse([]byte(`{"Points":[` + strings.Repeat("[1,2,3,4,5,6,7,8,9,10],", 900) + `[1]]}`))
	require.NoError(t, err)
	weight, err := fill(document, new(Frame))
	require.NoError(t, err)
	require.Less(t, weight, MaxFrame/2)
	require.Greater(t, weight, 900*100, "each point counts")
}

func TestImpossibleValues(t *testing.T) {
	f := &Frame{Listener: model.Listener{Verdict: model.Verdict{Status: 99}}}
	require.ErrorIs(t, f.check(), errImpossible)
	f = &Frame{Listener: model.Listener{AcceptQueue: &model.AcceptQueue{Limit: -1}}}
	require.ErrorIs(t, f.check(), errImpossible)
	f = &Frame{Points: []Point{{Status: -1}}}
	require.ErrorIs(t, f.check(), errImpossible)
	require.NoError(t, new(Frame).check())
}

func TestMergePatch(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{`{"a":1}`, `{"a":1}`, ``},
		{`{"a":1}`, `{"a":2}`, `{"a":2}`},
		{`{"a":1,"b":2}`, `{"a":1}`, `{"b":null}`},
		{`{"a":1,"b":2}`, `{"a":1,"b":null}`, `{"b":null}`},
		{`{"a":null}`, `{}`, ``},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, `{"a":{"c":3}}`},
		{`{"a":[1,2]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"a":1}`, `{"a":{"b":18446744073709551615}}`, `{"a":{"b":18446744073709551615}}`},
	} {
		from, err := parse([]byte(test.from))
		require.NoError(t, err)
		to, err := parse([]byte(test.to))
		require.NoError(t, err)
		patch := diff(from, to)
		if test.want == "" {
			require.Nil(t, patch, "%s -> %s", test.from, test.to)
			continue
		}
		text, err := json.Marshal(patch)
		require.NoError(t, err)
		require.Equal(t, test.want, string(text), "%s -> %s", test.from, test.to)
	}
}

func encoded(t *testing.T, f Frame) json.RawMessage {
	t.Helper()
	body, err := encode(f)
	require.NoError(t, err)
	return body
}
