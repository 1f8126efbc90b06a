package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Start is how a server of a case is started.
type Start func(*Case) *Server

// Server is a JVM of a case with the truth agent in it.
type Server struct {
	c     *Case
	PID   int
	truth string
}

// JVM is what a server runs in.
type JVM struct {
	Java string   // "" is the PATH's
	VM   []string // its flags
	Main []string // -jar FILE, or -cp PATH and a class, and the arguments
	Env  []string
	Dir  string
	Wrap []string
	Attr *syscall.SysProcAttr

	Stdin *os.File
}

// Boot is the Spring Boot application with its settings as arguments. A variant sets
// its limits in code.
func (j JVM) Boot(variant string, settings ...string) Start {
	return func(c *Case) *Server { return c.BootOf(variant, "tomcat", BootVersion, j, settings...) }
}

// Tomcat is a standalone server of that version.
func (j JVM) Tomcat(version, connectors string) Start {
	return func(c *Case) *Server { return c.Tomcat(version, j, connectors) }
}

// Embedded is a Tomcat in a program of its own, with attributes of its connector.
func (j JVM) Embedded(args ...string) Start {
	return func(c *Case) *Server { return c.Embedded(j, args...) }
}

// Java starts a JVM.
func (c *Case) Java(j JVM) *Server {
	c.Helper()
	s := &Server{c: c, truth: filepath.Join(c.Dir, "truth.json")}
	if j.Java == "" {
		j.Java = "java"
	}
	line := slices.Concat(j.Wrap, []string{j.Java, "-Xmx160m", "-XX:TieredStopAtLevel=1", "-javaagent:" + c.Truth() + "=" + s.truth, "-Djava.io.tmpdir=" + c.Dir}, j.VM, j.Main)
	cmd := exec.Command(line[0], line[1:]...) //nolint:noctx // ends with the case
	log, err := os.Create(filepath.Join(c.Dir, "server.log"))
	c.Must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, j.Dir
	if cmd.Dir == "" {
		cmd.Dir = c.Dir
	}
	if cmd.Env = append(os.Environ(), j.Env...); j.Stdin != nil {
		cmd.Stdin = j.Stdin
	}
	if cmd.SysProcAttr = j.Attr; j.Attr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	c.Must(cmd.Start())
	s.PID = cmd.Process.Pid
	c.AtEnd(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return s
}

// ServerOf is a server that something else has started with the truth agent in it.
func (c *Case) ServerOf(pid int) *Server {
	return &Server{c: c, PID: pid, truth: filepath.Join(c.Dir, "truth.json")}
}

// TruthFlag has a JVM write down what its MBeans say.
func (c *Case) TruthFlag() string {
	return "-javaagent:" + c.Truth() + "=" + filepath.Join(c.Dir, "truth.json")
}

// Boot starts the application with its settings as arguments.
func (c *Case) Boot(variant string, j JVM, settings ...string) *Server {
	c.Helper()
	return c.BootOf(variant, "tomcat", BootVersion, j, settings...)
}

// BootOf starts it on another server or of another version.
func (c *Case) BootOf(variant, kind, version string, j JVM, settings ...string) *Server {
	c.Helper()
	j.Main = append(slices.Clone(j.Main), "-jar", c.App(variant, kind, version))
	for _, s := range settings {
		j.Main = append(j.Main, "--"+s)
	}
	return c.Java(j)
}

// Embedded starts a Tomcat in a program of its own.
func (c *Case) Embedded(j JVM, args ...string) *Server {
	c.Helper()
	j.Main = append([]string{"-cp", c.EmbeddedPath(), "Embedded"}, args...)
	return c.Java(j)
}

// ConnectorTruth is what the MBeans say of one.
type ConnectorTruth struct {
	Name           string `json:"name"`
	Port           int    `json:"port"`
	LocalPort      int    `json:"localPort"`
	MaxThreads     int    `json:"maxThreads"`
	Threads        int    `json:"currentThreadCount"`
	Busy           int    `json:"currentThreadsBusy"`
	Connections    int    `json:"connectionCount"`
	MaxConnections int    `json:"maxConnections"`
	AcceptCount    int    `json:"acceptCount"`
}

func (t ConnectorTruth) String() string {
	if t.Name == "" {
		return "no Tomcat"
	}
	return used(t.Busy, t.MaxThreads, "threads busy") + ", " + used(t.Connections, t.MaxConnections, "connections")
}

// used is how much of a limit is: the MBeans say -1 of what they have no number of, as the
// threads of another executor, and of what has no limit.
func used(n, limit int, of string) string {
	switch {
	case n < 0:
		return "no number of " + of
	case limit < 0:
		return fmt.Sprintf("%d %s", n, of)
	}
	return fmt.Sprintf("%d of %d %s", n, limit, of)
}

// Says is what the MBeans say of the connector on a port (0 is the first); the zero
// value where there is none.
func (s *Server) Says(port int) ConnectorTruth {
	var out struct {
		Connectors []ConnectorTruth `json:"connectors"`
	}
	text, err := os.ReadFile(s.truth)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return ConnectorTruth{}
	}
	for _, one := range out.Connectors {
		if port == 0 || one.LocalPort == port || strings.HasSuffix(strings.Trim(one.Name, `"`), "-"+strconv.Itoa(port)) {
			return one
		}
	}
	return ConnectorTruth{}
}

// Set changes an attribute of the connector on Port over JMX.
func (s *Server) Set(attribute string, value int) {
	s.SetText(fmt.Sprint(attribute, "=", value))
}

// SetText is the same of NAME=VALUE.
func (s *Server) SetText(setting string) {
	attribute, value, _ := strings.Cut(setting, "=")
	file := s.truth + ".set"
	s.c.Must(os.WriteFile(file+".next", fmt.Appendf(nil, "%d %s %s\n", Port, attribute, value), 0o600))
	s.c.Must(os.Rename(file+".next", file))
	s.c.Until("the attribute is set", func() bool { _, err := os.Stat(file); return os.IsNotExist(err) })
}

// Threads is how many the process has.
func (s *Server) Threads() int {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.PID))
	return len(threads)
}

// HasThread reports whether one of that name (cut to 15 characters) is there.
func (s *Server) HasThread(name string) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", s.PID))
	return slices.ContainsFunc(tasks, func(file string) bool {
		text, _ := os.ReadFile(file)
		return strings.TrimSpace(string(text)) == name
	})
}

// Ended reports whether the process is gone.
func (s *Server) Ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
