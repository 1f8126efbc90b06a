package springboot

import (
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
)

// processIn is a process whose working directory is dir.
func processIn(dir string, args ...string) launch.Process {
	return launch.Process{
		Args: args, Env: map[string]string{}, EnvKnown: true,
		Open: jvmtest.Dir(dir).Open, ReadDir: jvmtest.Dir(dir).ReadDir,
	}
}
