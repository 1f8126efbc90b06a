package assistant

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

const someID = "000007-20260102T031205Z-8080"

// scripted is a source of documents that a test has made.
type scripted struct {
	takes     bool
	snapshot  func(context.Context, Query) (*api.Snapshot, error)
	incidents *api.Incidents
	incident  *api.Incident
}

func (s *scripted) TakesInterval() bool { return s.takes }

func (s *scripted) Snapshot(ctx context.Context, query Query) (*api.Snapshot, error) {
	out, err := s.snapshot(ctx, query)
	if err != nil {
		return nil, err
	}
	return OfPort(out, query.Port), nil
}

func (s *scripted) Incidents(context.Context) (*api.Incidents, error) {
	return copied(s.incidents), nil
}

func (s *scripted) Incident(_ context.Context, id string) (*api.Incident, error) {
	if id != someID {
		return nil, ErrUnknown
	}
	return copied(s.incident), nil
}

// copied is what another document of the same values is: answers are made of what the
// source gives away.
func copied[T any](v *T) *T {
	text, _ := json.Marshal(v)
	out := new(T)
	_ = json.Unmarshal(text, out)
	return out
}

// full is a source whose documents have every field there is. Each string is text.
func full(text string) *scripted {
	snap, incidents, one := filled[api.Snapshot](text), filled[api.Incidents](text), filled[api.Incident](text)
	snap.Listeners[0].Port = 8080
	return &scripted{
		takes: true, incidents: incidents, incident: one,
		snapshot: func(context.Context, Query) (*api.Snapshot, error) { return copied(snap), nil },
	}
}

func filled[T any](text string) *T {
	out := new(T)
	fill(reflect.ValueOf(out).Elem(), text)
	return out
}

// fill has one element in every list and map, and nothing absent.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 12, 5, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, text)
		v.SetMapIndex(reflect.ValueOf(text), value)
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		panic("a kind of field that no document had: " + v.Kind().String())
	}
}

// connect is the protocol library's own client, connected to a server that answers from
// a source.
func connect(t *testing.T, source Source, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	server, err := New(source, "1.2.3")
	require.NoError(t, err)
	here, there := mcp.NewInMemoryTransports()
	_, err = server.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options).Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// called is the answer of a tool.
func called(t *testing.T, session *mcp.ClientSession, name string, arguments any) *mcp.CallToolResult {
	t.Helper()
	out, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(t, err)
	return out
}

// document is the text of an answer that is the JSON document.
func document(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	require.False(t, r.IsError, "%s", textOf(r.Content[0]))
	require.Len(t, r.Content, 3)
	return textOf(r.Content[1])
}

func textOf(c mcp.Content) string { return c.(*mcp.TextContent).Text }

// compiled is a schema for a validator that the protocol's library has nothing to do with.
func compiled(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", schema))
	out, err := c.Compile("schema.json")
	require.NoError(t, err)
	return out
}
