package owner

import (
	"slices"
	"strconv"
	"strings"
)

// searchNames gives the sockets that are left to processes by their thread
// names. A process is only considered for sockets of its own user and of its own
// network namespace.
func (r *round) searchNames(sockets map[uint32]Socket, denied []*candidate) {
	pools := make(map[*candidate]pool, len(denied))
	for inode, s := range sockets {
		if _, done := r.found[inode]; done {
			continue
		}
		if c := r.byName(s, denied, pools); c != nil {
			r.setOwner(inode, c, -1)
		}
	}
}

// byName prefers a thread that names the port. Where the names have lost it,
// the command line may name it; or the process is the only one of its user
// that could not be read. Otherwise the owner stays unknown.
func (r *round) byName(s Socket, denied []*candidate, pools map[*candidate]pool) *candidate {
	var lost []*candidate
	ofUser := 0
	for _, c := range denied {
		if c.uid != s.UID || !r.together(s, c) {
			continue
		}
		ofUser++
		p, ok := pools[c]
		if !ok {
			p = r.pool(c.pid)
			pools[c] = p
		}
		if p.ports[s.Port] {
			return c // they are in order of age
		}
		if p.lost {
			lost = append(lost, c)
		}
	}
	for _, c := range lost {
		if ofUser == 1 || slices.Contains(r.f.numbers(c.pid, c.StartTime), s.Port) {
			return c
		}
	}
	return nil
}

// pool is what a process's thread names say of its connectors.
type pool struct {
	ports map[uint16]bool
	lost  bool // of some the port is not known
}

func (r *round) pool(pid int) pool {
	p := pool{ports: map[uint16]bool{}}
	_ = r.f.proc.ThreadNames(pid, func(_ int, comm string) {
		port, known, ok := poolPort(comm)
		if known {
			p.ports[port] = true
		}
		p.lost = p.lost || ok && !known
	})
	return p
}

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
