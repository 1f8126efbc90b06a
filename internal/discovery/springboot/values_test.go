package springboot

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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
