package examine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestAnswerCrossesWhole(t *testing.T) {
	e := &Examination{
		Known: true, Missing: []model.Unavailable{{What: "environ of pid 7", Why: "permission denied", How: "run as root"}},
		Found: match.Found{
			Server: model.ServerJVM().Name, Version: catalina.Version{Major: 9, Minor: 0, Patch: 117}, Management: "http://[::1]:8081/actuator",
			JVMPorts:    map[uint16]bool{5005: true, 9010: true},
			Unavailable: []model.Unavailable{{What: "x", Why: "y"}},
			Connectors: []catalina.Connector{{
				Port: 8080, Scheme: "http", Endpoint: "nio", NamePrefix: "exec-", Line: 7,
				Connector: model.Connector{
					Server: model.ServerTomcat().Name, Framework: "spring-boot", Version: "9.0.117", FrameworkVersion: "3", Protocol: "http-nio", Executor: "e",
					TLS: true, HTTP2: true,
					MaxConnections:    &model.Setting[int]{Value: -1, Kind: model.SourceFile, Source: "a", Note: "b", Uncertain: true},
					ConnectionTimeout: &model.Setting[time.Duration]{Value: time.Second, Kind: model.SourceDefault, Source: "default"},
					VirtualThreads:    &model.Setting[bool]{Value: true, Kind: model.SourceEnv, Source: "env X"},
				},
			}},
		},
		files:   []fileStamp{{Name: "/x", Content: "ab"}, {Name: "/y", Denied: true}},
		Numbers: []uint16{8443, 1},
	}
	text, err := e.encode()
	require.NoError(t, err)
	got, err := decode(bytes.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, e, got)
}

// What an examination has too much of is left out by the child.
func TestAnswerIsBounded(t *testing.T) {
	e := &Examination{Found: match.Found{Server: model.ServerTomcat().Name}}
	for i := range 10_000 {
		e.Missing = append(e.Missing, model.Unavailable{What: fmt.Sprint(i, strings.Repeat("x", 10_000)), Why: "\x1b[31m\u202e\x00"})
		e.files = append(e.files, fileStamp{Name: fmt.Sprint("/", i, strings.Repeat("y", 400))})
		e.Found.Connectors = append(e.Found.Connectors, catalina.Connector{Connector: model.Connector{Server: model.ServerTomcat().Name, Executor: "\u009b\xff" + strings.Repeat("é", 1000)}})
	}
	text, err := e.encode()
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), maxAnswer)
	got, err := decode(bytes.NewReader(text))
	require.NoError(t, err)
	require.Len(t, got.Found.Connectors, maxConnectorsN)
	require.NotContains(t, fmt.Sprint(got), "\x1b")
}

func TestInvalidAnswers(t *testing.T) {
	setting := func(kind model.SourceKind, value int, source string) wireConnector {
		return wireConnector{Server: model.ServerTomcat().Name, MaxThreads: &model.Setting[int]{Value: value, Kind: kind, Source: source}}
	}
	for name, a := range map[string]answer{
		"control":     {Server: model.ServerJVM().Name, Missing: []model.Unavailable{{What: "a\x1bb"}}},
		"long":        {Server: model.ServerJVM().Name, Missing: []model.Unavailable{{Why: strings.Repeat("x", maxText+1)}}},
		"bidi":        {Server: model.ServerJVM().Name, Files: []fileStamp{{Name: "\u202e"}}},
		"many":        {Server: model.ServerJVM().Name, Missing: make([]model.Unavailable, MaxUnavailable+2)},
		"numbers":     {Server: model.ServerJVM().Name, Numbers: make([]uint16, maxNumbers+1)},
		"connectors":  {Server: model.ServerJVM().Name, Connectors: make([]wireConnector, maxConnectorsN+1)},
		"range":       {Server: model.ServerJVM().Name, Connectors: []wireConnector{setting(model.SourceFile, 1<<40, "x")}},
		"kind":        {Server: model.ServerJVM().Name, Connectors: []wireConnector{setting(model.SourceActuator, 1, "x")}},
		"source":      {Server: model.ServerJVM().Name, Connectors: []wireConnector{setting(model.SourceFile, 1, "a\nb")}},
		"server":      {Server: model.ServerJVM().Name, Connectors: []wireConnector{{Server: "nginx"}}},
		"credentials": {Server: model.ServerJVM().Name, Management: "http://user:secret@127.0.0.1:80/"},
		"name":        {Server: model.ServerJVM().Name, Management: "http://localhost:80/"},
		"scheme":      {Server: model.ServerJVM().Name, Management: "file:///etc/passwd"},
		"version":     {Server: model.ServerJVM().Name, Version: catalina.Version{Major: -1}},
	} {
		text, err := json.Marshal(a)
		require.NoError(t, err)
		_, err = decode(bytes.NewReader(text))
		require.ErrorIs(t, err, errAnswer, name)
	}
}
