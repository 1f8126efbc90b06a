package catalina_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
)

func withoutProperties(p *process) {
	open := p.Open
	p.Open = func(name string) (*os.File, error) {
		if strings.HasSuffix(name, "/catalina.properties") {
			return nil, fs.ErrPermission
		}
		return open(name)
	}
}

func withoutEnvironment(p *process) { p.Partial = true }

const (
	propertiesDoubt  = "uncertain: conf/catalina.properties could not be read and may say otherwise"
	environmentDoubt = "uncertain: the environment could not be read and may say otherwise"
)

// TestUnreadProperties: catalina.properties beats -D, and -D beats the options
// that the environment may hold. What neither has given is not known.
func TestUnreadProperties(t *testing.T) {
	tests := map[string]struct {
		maxThreads string
		change     []func(*process)
		want       int // unknown: nil
		note       string
	}{
		"all is read":                       {"${x:-400}", nil, 400, ""},
		"catalina.properties, a default":    {"${x:-400}", []func(*process){withoutProperties}, 400, propertiesDoubt},
		"catalina.properties, -D":           {"${x}", []func(*process){withoutProperties, property("x", "50")}, 50, propertiesDoubt},
		"catalina.properties, nothing":      {"${x}", []func(*process){withoutProperties}, unknown, ""},
		"catalina.properties, a number":     {"400", []func(*process){withoutProperties}, 400, ""},
		"environment, a default":            {"${x:-400}", []func(*process){withoutEnvironment}, 400, environmentDoubt},
		"environment, -D":                   {"${x:-400}", []func(*process){withoutEnvironment, property("x", "50")}, 50, ""},
		"environment, nothing":              {"${x}", []func(*process){withoutEnvironment}, unknown, ""},
		"environment, a number":             {"400", []func(*process){withoutEnvironment}, 400, ""},
		"environment, a default's -D":       {"${x:-${y}}", []func(*process){withoutEnvironment, property("y", "50")}, 50, environmentDoubt},
		"environment, not a number":         {"${x:-many}", []func(*process){withoutEnvironment}, 200, environmentDoubt},
		"both, -D":                          {"${x}", []func(*process){withoutEnvironment, withoutProperties, property("x", "50")}, 50, propertiesDoubt},
		"environment, catalina.properties":  {"${x:-400}", []func(*process){withoutEnvironment, propertiesFile("x=60")}, 60, ""},
		"environment, parts of -D and none": {"${x}${y:-0}", []func(*process){withoutEnvironment, property("x", "5")}, 50, environmentDoubt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := connector(t, "10.1.59", `<Connector port="8080" maxThreads="`+tt.maxThreads+`" minSpareThreads="1"/>`, tt.change...)
			require.Equal(t, tt.want, number(c.MaxThreads))
			if tt.want == unknown {
				return
			}
			require.Equal(t, tt.note != "", c.MaxThreads.Uncertain)
			require.True(t, strings.HasSuffix(c.MaxThreads.Note, tt.note), c.MaxThreads.Note)
			require.False(t, c.MinSpareThreads.Uncertain)
		})
	}
}

// TestUnreadPort: a connector whose port is not known may listen.
func TestUnreadPort(t *testing.T) {
	for name, attributes := range map[string]string{
		"port": `port="${http.port}"`, "offset": `port="8080"`,
	} {
		server := map[string]string{"offset": `portOffset="${off}"`}[name]
		s, err := load(t, "10.1.59", `<Server port="8005" `+server+`><Service><Connector `+attributes+`/></Service></Server>`, withoutEnvironment)
		require.NoError(t, err)
		require.Len(t, s.Connectors, 1, name)
		require.Zero(t, s.Connectors[0].Port, name)
	}
}

// TestDoubtIsHandedOn: what follows another setting, or has a note of its own, is
// as uncertain.
func TestDoubtIsHandedOn(t *testing.T) {
	c := connector(t, "9.0.117", `<Connector port="8080" connectionTimeout="${x:-5}" maxConnections="${x:--1}"/>`, withoutProperties)
	require.Equal(t, 5*time.Millisecond, c.KeepAliveTimeout.Value)
	require.True(t, c.KeepAliveTimeout.Uncertain)
	require.Equal(t, propertiesDoubt, c.KeepAliveTimeout.Note)
	require.Equal(t, catalina.NoLimit, c.MaxConnections.Value)
	require.True(t, c.MaxConnections.Uncertain)
	require.Equal(t, propertiesDoubt+"; no limit", c.MaxConnections.Note)

	bio := `protocol="org.apache.coyote.http11.Http11Protocol"`
	c = connector(t, "8.0.53", `<Connector port="8080" `+bio+` maxThreads="${x}"/>`, withoutProperties)
	require.Nil(t, c.MaxThreads)
	require.Nil(t, c.MaxConnections, "it is maxThreads")
	c = connector(t, "8.0.53", `<Connector port="8080" `+bio+` maxThreads="${x}"/>`, withoutProperties, property("x", "7"))
	require.Equal(t, 7, c.MaxConnections.Value)
	require.True(t, c.MaxConnections.Uncertain)
}
