package owner

import (
	"strconv"
	"strings"
)

// commLength is the longest name of a thread: TASK_COMM_LEN - 1.
const commLength = 15

// poolPort parses the name of a Tomcat thread, "http-nio-8080-exec-1" cut to 15
// characters. ok says that it is one; known that the port has survived the cut:
// "https-jsse-nio-8443-exec-1" and, with an address, "http-nio-127.0.0.1-8080"
// lose it.
func poolPort(comm string) (port uint16, known, ok bool) {
	parts := strings.Split(comm, "-")
	if len(parts) < 3 || !isProtocol(parts[0]) || !isEndpoint(parts[1]) {
		return 0, false, false
	}
	for _, part := range parts[2 : len(parts)-1] { // a last part may be cut
		if n, err := strconv.ParseUint(part, 10, 16); err == nil && n > 0 {
			return uint16(n), true, true
		}
		if !isEndpoint(part) {
			break
		}
	}
	return 0, false, len(comm) >= commLength
}

func isProtocol(s string) bool { return s == "http" || s == "https" || s == "ajp" }

// isEndpoint knows the parts of Tomcat's endpoint names: "nio", "jsse-nio".
func isEndpoint(s string) bool {
	switch s {
	case "nio", "nio2", "bio", "apr", "jsse", "openssl":
		return true
	}
	return false
}
