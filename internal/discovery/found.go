package discovery

import (
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// identify says what a process is.
func identify(t *target) *found {
	f := identifyServer(t)
	f.jvmPorts = jvmPorts(slices.Concat(t.args, strings.Fields(t.vmArgs())))
	return f
}

func identifyServer(t *target) *found {
	if options, arguments, ok := bootstrap(t.args); ok {
		return standalone(t, options, arguments)
	}
	if arguments, ok := t.bootstrapped(); ok {
		return standalone(t, t.args[1:], arguments)
	}
	if !t.isJava() {
		return &found{server: model.ServerOther().Name}
	}
	if f := boot(t); f != nil {
		return f
	}
	return &found{server: model.ServerJVM().Name}
}

// standalone reads a Tomcat of its own.
func standalone(t *target, options, arguments []string) *found {
	server, err := catalina.Load(t.catalina(options, arguments))
	f := &found{
		server:      model.ServerJVM().Name, // its shutdown port, JMX, a debugger
		connectors:  server.Connectors,
		version:     server.Version,
		unavailable: server.Unavailable,
	}
	if err != nil {
		f.unavailable = append(f.unavailable, model.Unavailable{What: server.File, Why: err.Error(), How: byHand})
	}
	return f
}
