package springboot

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// environmentOf is an environment of arguments only.
func environmentOf(boot, java string, args ...string) *Environment {
	return &Environment{boot: boot, tomcat: "9.0.0", java: java, docs: []*properties.Document{launch.Arguments(args)}}
}

func TestDefaultsByVersion(t *testing.T) {
	for boot, want := range map[string]int{
		"1.5.22.RELEASE": 10000, "2.0.9.RELEASE": 10000, "2.1.11.RELEASE": 10000, "2.1.12.RELEASE": 8192, "2.1.18.RELEASE": 8192,
		"2.2.0.RELEASE": 10000, "2.2.2.RELEASE": 10000, "2.2.3.RELEASE": 8192, "2.7.18": 8192, "3.5.16": 8192, "4.1.1": 8192, "": 8192,
	} {
		s := environmentOf(boot, "").Settings()
		require.Equal(t, want, s.MaxConnections.Value, boot)
		require.Equal(t, model.SourceDefault, s.MaxConnections.Kind)
		require.Equal(t, 100, s.AcceptCount.Value)
		require.Equal(t, 200, s.MaxThreads.Value)
		require.Equal(t, 10, s.MinSpareThreads.Value)
		require.Equal(t, 100, s.MaxKeepAliveRequests.Value)
		require.Equal(t, 60*time.Second, s.ConnectionTimeout.Value)
		require.Equal(t, 60*time.Second, s.KeepAliveTimeout.Value)
		require.Equal(t, 8080, s.Port.Value)
		require.Nil(t, s.Address)
		require.Nil(t, s.ManagementPort)
		require.Empty(t, s.Unavailable)
	}
	s := environmentOf("2.7.18", "").Settings()
	require.Equal(t, "default of Spring Boot 2.7.18 (Tomcat 9.0.0)", s.MaxConnections.Source)
	require.Equal(t, "the connection timeout, as it is not set itself", s.KeepAliveTimeout.Note)
}

// A line that this version ignores is reported, whether or not another sets the value.
func TestDeadLines(t *testing.T) {
	s := environmentOf("3.5.16", "", "--server.tomcat.max-threads=33").Settings()
	require.Equal(t, 200, s.MaxThreads.Value)
	require.Contains(t, s.MaxThreads.Note, "server.tomcat.max-threads=33 from ")
	require.Contains(t, s.MaxThreads.Note, " has no effect: Spring Boot 3.5.16 ignores it, the property is server.tomcat.threads.max")
	s = environmentOf("3.5.16", "", "--server.tomcat.max-threads=33", "--server.tomcat.threads.max=44").Settings()
	require.Equal(t, 44, s.MaxThreads.Value)
	require.Contains(t, s.MaxThreads.Note, "has no effect")
	require.Empty(t, environmentOf("2.3.12.RELEASE", "", "--server.tomcat.max-threads=33").Settings().MaxThreads.Note, "it counts")
	require.Empty(t, environmentOf("", "", "--server.tomcat.max-threads=33").Settings().MaxThreads.Note, "which version it is is not known")
}

// A name counts only in the versions that bind it.
func TestNamesByVersion(t *testing.T) {
	args := []string{
		"--server.tomcat.max-threads=33", "--server.tomcat.min-spare-threads=3", "--server.connection-timeout=9s",
		"--server.tomcat.keep-alive-timeout=5s", "--server.tomcat.max-keep-alive-requests=7", "--server.tomcat.threads.max-queue-capacity=4",
	}
	tests := map[string]struct {
		threads, spare, requests, queue int
		connection, keepAlive           time.Duration
	}{
		"1.5.22.RELEASE": {33, 3, 100, 1<<31 - 1, 9 * time.Second, 9 * time.Second},
		"2.2.3.RELEASE":  {33, 3, 100, 1<<31 - 1, 9 * time.Second, 9 * time.Second},
		"2.3.12.RELEASE": {33, 3, 100, 1<<31 - 1, time.Minute, time.Minute},
		"2.4.0":          {33, 3, 100, 1<<31 - 1, time.Minute, time.Minute},
		"2.4.13":         {33, 3, 100, 1<<31 - 1, time.Minute, time.Minute},
		"2.5.0":          {200, 10, 7, 1<<31 - 1, time.Minute, 5 * time.Second},
		"2.7.18":         {200, 10, 7, 1<<31 - 1, time.Minute, 5 * time.Second},
		"3.3.13":         {200, 10, 7, 4, time.Minute, 5 * time.Second},
	}
	for boot, want := range tests {
		s := environmentOf(boot, "", args...).Settings()
		require.Equal(t, want.threads, s.MaxThreads.Value, boot)
		require.Equal(t, want.spare, s.MinSpareThreads.Value, boot)
		require.Equal(t, want.requests, s.MaxKeepAliveRequests.Value, boot)
		require.Equal(t, want.queue, s.MaxQueue.Value, boot)
		require.Equal(t, want.connection, s.ConnectionTimeout.Value, boot)
		require.Equal(t, want.keepAlive, s.KeepAliveTimeout.Value, boot)
	}
	s := environmentOf("2.3.12.RELEASE", "", "--server.tomcat.threads.max=44", args[0]).Settings()
	require.Equal(t, 44, s.MaxThreads.Value)
}

// What Spring Boot ignores is shown as ignored, with the default in force.
func TestIgnoredValues(t *testing.T) {
	s := environmentOf("3.5.16", "", "--server.tomcat.accept-count=0", "--server.tomcat.max-connections=-1", "--server.tomcat.threads.max=0").Settings()
	require.Equal(t, model.Setting[int]{
		Value: 100, Kind: model.SourceDefault, Source: "default of Spring Boot 3.5.16 (Tomcat 9.0.0)",
		Note: "server.tomcat.accept-count=0 from argument --server.tomcat.accept-count is ignored by Spring Boot, which passes on only what is above 0",
	}, *s.AcceptCount)
	require.Equal(t, 8192, s.MaxConnections.Value)
	require.Contains(t, s.MaxConnections.Note, "server.tomcat.max-connections=-1")
	require.Equal(t, 200, s.MaxThreads.Value)

	s = environmentOf("3.5.16", "", "--server.tomcat.threads.max=5", "--server.tomcat.threads.min-spare=20").Settings()
	require.Equal(t, 5, s.MinSpareThreads.Value)
	require.Contains(t, s.MinSpareThreads.Note, "20 is set")
}

func TestVirtualThreads(t *testing.T) {
	const on = "--spring.threads.virtual.enabled=true"
	tests := map[string]struct {
		boot, java, arg string
		want            *bool
		note            string
	}{
		"Java 21":         {"3.5.16", "21.0.8", on, new(true), ""},
		"Java 25":         {"4.1.1", "25", on, new(true), ""},
		"Java 17":         {"3.5.16", "17.0.15", on, new(false), "set, but without effect: Java 17.0.15 has no virtual threads"},
		"Java 8":          {"3.5.16", "1.8.0_402", on, new(false), "set, but without effect: Java 1.8.0_402 has no virtual threads"},
		"Spring Boot 3.1": {"3.1.12", "21", on, new(false), ""},
		"not asked for":   {"3.5.16", "21", "--x=y", new(false), ""},
		"Java not known":  {"3.5.16", "", on, nil, ""},
		"not a boolean":   {"3.5.16", "21", "--spring.threads.virtual.enabled=maybe", nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := environmentOf(tt.boot, tt.java, tt.arg).Settings()
			if tt.want == nil {
				require.Nil(t, s.VirtualThreads)
				require.Len(t, s.Unavailable, 1)
				return
			}
			require.Equal(t, *tt.want, s.VirtualThreads.Value)
			require.Equal(t, tt.note, s.VirtualThreads.Note)
			require.Equal(t, *tt.want, s.MaxThreads.Note != "")
		})
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	tests := map[string]struct {
		args       []string
		tls, http2 bool
		source     string
	}{
		"nothing":       {nil, false, false, "default of Spring Boot 3.5.16 (Tomcat 9.0.0)"},
		"a key store":   {[]string{"--server.ssl.keyStore=x.p12"}, true, false, "argument --server.ssl.keyStore"},
		"a bundle":      {[]string{"--server.ssl.bundle=web"}, true, false, "argument --server.ssl.bundle"},
		"switched off":  {[]string{"--server.ssl.key-store=x", "--server.ssl.enabled=no"}, false, false, "argument --server.ssl.enabled"},
		"HTTP/2":        {[]string{"--server.http2.enabled=true"}, false, true, "default of Spring Boot 3.5.16 (Tomcat 9.0.0)"},
		"a longer name": {[]string{"--server.sslx=1"}, false, false, "default of Spring Boot 3.5.16 (Tomcat 9.0.0)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := environmentOf("3.5.16", "", tt.args...).Settings()
			require.Equal(t, tt.tls, s.TLS.Value)
			require.Equal(t, tt.source, s.TLS.Source)
			require.Equal(t, tt.http2, s.HTTP2.Value)
		})
	}
}

func TestPorts(t *testing.T) {
	s := environmentOf("3.5.16", "", "--server.port=0", "--management.server.port=9001", "--server.address=127.0.0.1").Settings()
	require.Equal(t, 0, s.Port.Value)
	require.Equal(t, 9001, s.ManagementPort.Value)
	require.Equal(t, "127.0.0.1", s.Address.Value)
}

// A value that cannot be converted or known is left out, with the reason.
func TestUnknownValues(t *testing.T) {
	s := environmentOf("3.5.16", "",
		"--server.port=${random.int(1024,65535)}", "--server.tomcat.accept-count=many", "--server.tomcat.connection-timeout=5 s",
		"--a=${b}", "--b=${a}", "--server.tomcat.max-connections=${a}", "--server.tomcat.threads.max=${NOPE}").Settings()
	require.Nil(t, s.Port)
	require.Nil(t, s.AcceptCount)
	require.Nil(t, s.ConnectionTimeout)
	require.Nil(t, s.KeepAliveTimeout)
	require.Nil(t, s.MaxConnections)
	require.Nil(t, s.MaxThreads)
	require.NotNil(t, s.MinSpareThreads)
	all := whats(s.Unavailable)
	require.Len(t, all, 5)
	require.Contains(t, all[0], "random: drawn when the application started")
	require.Contains(t, all[0], "server.port from argument --server.port")
	require.Contains(t, all[1], "circular placeholder reference")
	require.Equal(t, "server.tomcat.accept-count from argument --server.tomcat.accept-count: not an integer", all[2])
	require.Equal(t, "server.tomcat.threads.max from argument --server.tomcat.threads.max: not an integer", all[3])
	require.Contains(t, all[4], "not a duration")
}

// Where a file or an import could not be read, what a file or a default says
// may not be in force; without the application's jar, nothing is claimed to be
// a default.
func TestDoubt(t *testing.T) {
	c := binderCase{
		Files: map[string]string{"application.yml": "server.tomcat.accept-count: 5\nspring.config.import: 'optional:configserver:'\n"},
		Args:  []string{"--server.port=1"}, Env: map[string]string{"SERVER_TOMCAT_THREADS_MAX": "7"},
	}
	e, err := Load(jarLayout(t, t.TempDir(), "3.5.16", c))
	require.NoError(t, err)
	s := e.Settings()
	const doubt = "uncertain: settings imported from optional:configserver: could not be read and may say otherwise"
	require.Equal(t, doubt, s.AcceptCount.Note)
	require.Equal(t, doubt, s.MaxConnections.Note)
	require.Empty(t, s.Port.Note)
	require.Empty(t, s.MaxThreads.Note)

	c.Files["config/application.yml"] = "malformed: ["
	e, err = Load(jarLayout(t, t.TempDir(), "3.5.16", c))
	require.NoError(t, err)
	require.Contains(t, e.Settings().AcceptCount.Note, "and 1 more could not be read")

	p := jarLayout(t, t.TempDir(), "3.5.16", binderCase{})
	p.EnvKnown, p.Env = false, nil
	e, err = Load(p)
	require.NoError(t, err)
	require.Equal(t, "environment of the process", e.Unavailable()[0].What)
	require.Empty(t, e.Settings().MaxConnections.Note)

	e, err = Load(launch.Process{Args: []string{"java", "-jar", "gone.jar", "--server.port=1"}, EnvKnown: true})
	require.NoError(t, err)
	s = e.Settings()
	require.Equal(t, 1, s.Port.Value)
	require.Nil(t, s.MaxConnections)
	require.Nil(t, s.AcceptCount)
	require.Nil(t, s.TLS)
	require.Nil(t, s.KeepAliveTimeout)
}

// secret stands in every place of a configuration where it does not belong.
const secret = "TOPSECRET"

// A value is never repeated: not in what is unavailable, not in a source, not in
// a note, wherever it was put and however it fails there.
func TestValuesAreNotRepeated(t *testing.T) {
	for name, c := range map[string]binderCase{
		"no integer":          {Files: map[string]string{"application.yml": "server.tomcat.max-connections: TOPSECRET\n"}},
		"placeholder":         {Args: []string{"--server.tomcat.max-connections=${TOKEN}", "--server.port=${TOKEN:1}"}},
		"circular":            {Args: []string{"--server.port=${a:TOPSECRET}", "--a=${a:TOPSECRET}"}},
		"random":              {Args: []string{"--server.port=${random.TOPSECRET}"}},
		"no boolean":          {Args: []string{"--server.http2.enabled=TOPSECRET"}},
		"no duration":         {Args: []string{"--server.tomcat.connection-timeout=TOPSECRET"}},
		"config server":       {Args: []string{"--spring.config.import=configserver:http://TOPSECRET:TOPSECRET@host/path?token=TOPSECRET"}},
		"vault":               {Args: []string{"--spring.config.import=vault:TOPSECRET@host#TOPSECRET"}},
		"import":              {Args: []string{"--spring.config.import=file:/etc/${TOKEN}/a.yml,file:${TOKEN}.bin,configtree:${TOKEN}/"}},
		"location":            {Args: []string{"--spring.config.location=file:/x/${TOKEN}/"}},
		"name":                {Args: []string{"--spring.config.name=${TOKEN}"}, Files: map[string]string{"TOPSECRET.yml": "a: [\n"}},
		"profile":             {Args: []string{"--spring.profiles.active=${TOKEN}"}, Files: map[string]string{"application-TOPSECRET.yml": "server.port: 7\na: [\n", "application.properties": "server.tomcat.accept-count=7\n#---\nspring.config.activate.on-profile=${TOKEN}\nserver.tomcat.accept-count=8\n"}},
		"profile of its file": {Args: []string{"--spring.profiles.active=${TOKEN}"}, Files: map[string]string{"application-TOPSECRET.yml": "server.port: 7\n"}},
		"duplicate key":       {Files: map[string]string{"application.yml": "TOPSECRET: 1\nTOPSECRET: 2\n"}},
		"no yaml":             {Files: map[string]string{"application.yml": "a: *TOPSECRET\n"}},
		"no yaml either":      {Files: map[string]string{"application.yml": "a: !!int TOPSECRET\nb: \"\\uTOPSECRET\n"}},
		"no xml":              {Files: map[string]string{"application.xml": "<properties>&TOPSECRET;</TOPSECRET>"}},
		"no properties":       {Files: map[string]string{"application.properties": "a=\\uTOPSECRET\n"}},
		"no json":             {Env: map[string]string{"SPRING_APPLICATION_JSON": `{"a": TOPSECRET}`}},
	} {
		for _, boot := range []string{"2.3.12.RELEASE", "2.7.18", "3.5.16"} {
			t.Run(name+" "+boot, func(t *testing.T) {
				env := map[string]string{"TOKEN": secret}
				for k, v := range c.Env {
					env[k] = v
				}
				c.Env = env
				e, err := Load(jarLayout(t, t.TempDir(), boot, c))
				require.NoError(t, err)
				s := e.Settings()
				require.NotContains(t, fmt.Sprintf("%+v %+v", e.Unavailable(), s.Unavailable), secret)
				require.NotContains(t, fmt.Sprintf("%+v %+v %+v %+v %+v", s.Port, s.MaxConnections, s.AcceptCount, s.MaxThreads, s.ConnectionTimeout), secret)
			})
		}
	}
}
