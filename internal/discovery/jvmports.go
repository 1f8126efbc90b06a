package discovery

import (
	"strconv"
	"strings"
)

// jvmPorts are the ports that the JVM's options open for itself: of a debugger
// (jdwp's address) and of JMX. They are never a connector's.
func jvmPorts(options []string) map[uint16]bool {
	out := make(map[uint16]bool)
	add := func(text string) {
		if port, err := strconv.ParseUint(text[strings.LastIndexByte(text, ':')+1:], 10, 16); err == nil && port > 0 {
			out[uint16(port)] = true
		}
	}
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		switch {
		case name == "-agentlib:jdwp" || strings.HasPrefix(name, "-Xrunjdwp:"):
			_, address, _ := strings.Cut(o, "address=")
			address, _, _ = strings.Cut(address, ",")
			add(address)
		case name == "-Dcom.sun.management.jmxremote.port" || name == "-Dcom.sun.management.jmxremote.rmi.port":
			add(value)
		}
	}
	return out
}
