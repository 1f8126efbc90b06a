package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// SlowPage is a handler of a standalone Tomcat.
const SlowPage = `<% Thread.sleep(Long.parseLong(request.getParameter("ms"))); %>hello
`

// InServer is a server.xml with a Service of these connectors; before is what stands
// before it.
func InServer(before, connectors string) string {
	return fmt.Sprintf("<Server port=\"-1\">%s<Service name=\"Catalina\">\n%s\n<Engine name=\"Catalina\" defaultHost=\"localhost\"><Host name=\"localhost\" appBase=\"webapps\"/></Engine></Service></Server>\n", before, connectors)
}

// Base is a CATALINA_BASE of its own, with connectors inside its Service or a whole
// server.xml, and /slow.jsp?ms=N.
func (c *Case) Base(home, connectors string) string {
	c.Helper()
	base := filepath.Join(c.Dir, "base")
	for _, dir := range []string{"conf", "temp", "logs", "work", "webapps/ROOT"} {
		c.Must(os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	xml := connectors
	if !strings.Contains(xml, "<Server") {
		xml = InServer("", connectors)
	}
	c.Write("base/conf/server.xml", xml)
	c.Write("base/webapps/ROOT/slow.jsp", SlowPage)
	web, err := os.ReadFile(filepath.Join(home, "conf/web.xml"))
	c.Must(err)
	c.Write("base/conf/web.xml", string(web))
	return base
}

// Catalina starts the server of a CATALINA_BASE.
func (c *Case) Catalina(home, base string, j JVM) *Server {
	c.Helper()
	jars := filepath.Join(home, "bin/bootstrap.jar") + ":" + filepath.Join(home, "bin/tomcat-juli.jar")
	j.Main = []string{"-cp", jars, "-Dcatalina.base=" + base, "-Dcatalina.home=" + home, "org.apache.catalina.startup.Bootstrap", "start"}
	return c.Java(j)
}

// Tomcat starts a standalone server of that version.
func (c *Case) Tomcat(version string, j JVM, connectors string) *Server {
	c.Helper()
	home := c.Distribution(version)
	return c.Catalina(home, c.Base(home, connectors), j)
}

// Activated starts a Tomcat with a socket that it has not opened (socket activation).
func (c *Case) Activated(connector string, backlog int) *Server {
	c.Helper()
	return c.ActivatedOn("", connector, backlog)
}

// ActivatedOn is the same with a socket of one device (BindToDevice= of systemd), "" for any.
func (c *Case) ActivatedOn(device, connector string, backlog int) *Server {
	c.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	c.Must(err)
	socket := os.NewFile(uintptr(fd), "socket")
	defer socket.Close()
	const reusePort = 15 // SO_REUSEPORT, which package syscall does not name
	c.Must(errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, reusePort, 1),
		syscall.BindToDevice(fd, device),
		syscall.Bind(fd, &syscall.SockaddrInet4{Port: Port}),
		syscall.Listen(fd, backlog),
	))
	return c.Tomcat(Tomcat10, JVM{Stdin: socket}, connector)
}
