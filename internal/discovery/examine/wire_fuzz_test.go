package examine

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// FuzzAnswer decodes answers of a child that has become another program: what is
// accepted is within the bounds, and the same when it is written again.
func FuzzAnswer(f *testing.F) {
	m := mutate.Into(f)
	for _, e := range []*Examination{
		{Found: match.Found{Server: model.ServerOther().Name}},
		{Known: true, Numbers: []uint16{8443}, files: []fileStamp{{Name: "/x", Content: "ab"}, {Name: "/y", Denied: true}}, Found: match.Found{
			Server: model.ServerTomcat().Name, Management: "http://[::1]:8081/actuator", Version: catalina.Version{Major: 9},
			Unavailable: []model.Unavailable{{What: "x", Why: "y"}}, JVMPorts: map[uint16]bool{5005: true},
			Connectors: []catalina.Connector{{Port: 8080, Connector: model.Connector{
				Server: model.ServerTomcat().Name, Executor: "e", MaxThreads: &model.Setting[int]{Value: 7, Kind: model.SourceFile, Source: "a"},
				KeepAliveTimeout: &model.Setting[time.Duration]{Value: -1, Kind: model.SourceDefault, Source: "default"},
			}}},
		}},
	} {
		text, err := e.encode()
		require.NoError(f, err)
		m.Add(text)
	}
	m.Add([]byte(`{"Failure":"why"}`))
	m.Fuzz(func(t *testing.T, text []byte) {
		e, err := decode(bytes.NewReader(text))
		if err != nil {
			require.LessOrEqual(t, len(err.Error()), maxText+100)
			return
		}
		require.LessOrEqual(t, len(e.Found.Connectors), maxConnectorsN)
		require.LessOrEqual(t, len(e.files), maxStamps)
		again, err := e.encode()
		require.NoError(t, err)
		require.True(t, json.Valid(again))
		same, err := decode(bytes.NewReader(again))
		require.NoError(t, err)
		require.Equal(t, e.Numbers, same.Numbers)
		require.Equal(t, e.Found.Management, same.Found.Management)
		require.Len(t, same.Found.Connectors, len(e.Found.Connectors))
	})
}
