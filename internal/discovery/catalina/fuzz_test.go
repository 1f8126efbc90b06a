package catalina

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func FuzzServerXML(f *testing.F) {
	m := mutate.Into(f)
	for _, seed := range []string{
		`<Server><Service><Connector port="8080" maxThreads="42"/></Service></Server>`,
		`<Server portOffset="${a:-1}"><Service><Executor name="e"/><Connector port="1" executor="e" address="::1" SSLEnabled="true"/></Service></Server>`,
		`<!DOCTYPE Server [<!ENTITY n "1">]><Server><Service><Connector port="&n;"/></Service></Server>`,
		`<Server><Service><Connector port='0' maxConnections='-1' protocol="AJP/1.3"/></Service></Server>`,
		"\xfe\xff\x00<\x00S\x00/\x00>", `<?xml version="1.0" encoding="latin1"?><Server/>`,
	} {
		m.Add([]byte(seed), "b", "10.1.59")
	}
	m.Fuzz(func(t *testing.T, text []byte, property, version string) {
		doc, err := parseXML(text)
		if err != nil {
			return
		}
		v, _ := ParseVersion(version)
		s := &Server{File: "conf/server.xml", Version: v}
		p := &Process{Properties: map[string]Property{"a": {Text: property, Kind: model.SourceProperty, Source: "-Da"}}}
		if s.build(doc, p.newSources(p.Properties, v)) != nil {
			return
		}
		for _, c := range s.Connectors {
			require.NotNil(t, c.MaxConnections)
			require.NotNil(t, c.KeepAliveTimeout)
			require.Positive(t, c.AcceptCount.Value)
			require.Equal(t, "tomcat", c.Server)
			require.Positive(t, c.Line)
			require.GreaterOrEqual(t, c.MaxConnections.Value, NoLimit)
		}
	})
}

func FuzzReplace(f *testing.F) {
	m := mutate.Into(f)
	m.Add("${a:-${b}}${c", "${b}", "1", true)
	m.Add("$}{${a}", "${a}${a}", "", true)
	m.Fuzz(func(t *testing.T, text, a, b string, nested bool) {
		s := &sources{nested: nested, dashed: true, properties: map[string]Property{"a": {Text: a}, "b": {Text: b}}}
		out, _ := s.replace(text)
		require.LessOrEqual(t, len(out), 2*(maxReplaced+len(text)+len(a)+len(b)))
	})
}
