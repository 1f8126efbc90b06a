package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// inherited are servers whose listening socket somebody else has opened (socket
// activation): its backlog is that of who did, whatever acceptCount says.
func inherited() []deployment {
	const connector = `<Connector port="8080" maxThreads="6" acceptCount="50" useInheritedChannel="true"/>`
	return []deployment{
		{"a listening socket inherited as descriptor 0 (useInheritedChannel), opened with a backlog of 7", func(b *bench) {
			s := b.activated(connector, 7)
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 30, get("/slow.jsp?ms=60000"), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == 6 && s.says(port).Connections >= 30 })
			b.row.Truth = s.says(port).String() + ", acceptCount 50, a backlog of 7"
			said := b.ask(port)
			b.verdict(said, "saturated max_threads")
			b.names(said, "in force is 7")
			b.silent(said, "backlog_clamped", "somaxconn=50")
		}},
		{"two Tomcats that share a port (SO_REUSEPORT), each with 6 threads", func(b *bench) {
			one, two := b.beside("one"), b.beside("two")
			first, second := one.activated(connector, 50), two.activated(connector, 50)
			b.answers("127.0.0.1:8080")
			b.hold("tcp", "127.0.0.1:8080", 60, get("/slow.jsp?ms=60000"), nil)
			b.until("all threads are busy", func() bool {
				return first.says(port).Busy == 6 && second.says(port).Busy == 6 && first.says(port).Connections+second.says(port).Connections >= 60
			})
			b.row.Truth = first.says(port).String() + "; and " + second.says(port).String()
			said := b.ask(port)
			b.verdict(said, "saturated max_threads")
			b.names(said, "maxThreads from 6 to 30 in each of the 2 processes that share the port")
		}},
	}
}

// activated starts a Tomcat with a socket that it has not opened.
func (b *bench) activated(connector string, backlog int) *server {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	b.must(err)
	socket := os.NewFile(uintptr(fd), "socket")
	defer socket.Close()
	const reusePort = 15 // SO_REUSEPORT, which package syscall does not name
	b.must(errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, reusePort, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Port: port}),
		syscall.Listen(fd, backlog),
	))
	return b.tomcat(tomcat10, options{stdin: socket}, connector)
}

// beside is the same with a folder of its own, for a server beside another.
func (b *bench) beside(name string) *bench {
	other := *b
	other.dir = filepath.Join(b.dir, name)
	b.must(os.Mkdir(other.dir, 0o755))
	other.cleanup = nil
	b.cleanup = append(b.cleanup, func() { other.unwind() })
	return &other
}
