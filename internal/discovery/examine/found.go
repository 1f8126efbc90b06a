package examine

import (
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// identify says what a process is.
func identify(t *target) *match.Found {
	f := identifyServer(t)
	f.JVMPorts = jvmPorts(slices.Concat(t.args, strings.Fields(t.vmArgs())))
	return f
}

func identifyServer(t *target) *match.Found {
	if options, arguments, ok := bootstrap(t.args); ok {
		return standalone(t, options, arguments)
	}
	if arguments, ok := t.bootstrapped(); ok {
		return standalone(t, t.args[1:], arguments)
	}
	if !t.isJava() {
		return &match.Found{Server: model.ServerOther().Name}
	}
	if f := boot(t); f != nil {
		return f
	}
	return &match.Found{Server: model.ServerJVM().Name}
}

// standalone reads a Tomcat of its own.
func standalone(t *target, options, arguments []string) *match.Found {
	server, err := catalina.Load(t.catalina(options, arguments))
	f := &match.Found{
		Server:      model.ServerJVM().Name, // its shutdown port, JMX, a debugger
		Connectors:  server.Connectors,
		Version:     server.Version,
		Unavailable: server.Unavailable,
	}
	if err != nil {
		f.Unavailable = append(f.Unavailable, model.Unavailable{What: server.File, Why: err.Error(), How: match.ByHand})
	}
	return f
}
