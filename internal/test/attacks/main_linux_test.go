package attacks

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"
)

// attackerPort makes this program the hostile process: it looks like a JVM by
// its name and its arguments, and listens.
const attackerPort = "TCPDIAG_ATTACKER_PORT"

func TestMain(m *testing.M) {
	port, attacker := os.LookupEnv(attackerPort)
	if !attacker {
		os.Exit(m.Run())
	}
	go nameThread("http-nio-" + port + "-e")
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		if _, err := l.Accept(); err != nil {
			os.Exit(1)
		}
	}
}

// nameThread makes a thread look like one of a Tomcat's: what cannot be read of
// other programs is not reported.
func nameThread(name string) {
	runtime.LockOSThread()
	if err := os.WriteFile("/proc/thread-self/comm", []byte(name), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	select {}
}
