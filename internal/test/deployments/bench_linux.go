package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/e2e"
)

// bench is what one case works with. A step that fails panics with a failure.
type bench struct {
	*kit
	ctx     context.Context
	dir     string
	cleanup []func()
	row     row
	viewer  *syscall.Credential // who runs tcpdiag; nil is the one who runs this

	nextPort *atomic.Int64 // of clients that choose their own
}

type failure struct{ error }

func (b *bench) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func (b *bench) until(what string, condition func() bool) {
	deadline := time.Now().Add(3 * time.Minute)
	for !condition() {
		if time.Now().After(deadline) || b.ctx.Err() != nil {
			b.must(fmt.Errorf("not within three minutes: %s", what))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// server is a JVM of a case with the truth agent in it.
type server struct {
	b     *bench
	pid   int
	truth string
	log   string
}

// options start a JVM.
type options struct {
	java string // "" is the PATH's
	vm   []string
	main []string // -jar FILE, or -cp PATH and a class, and the arguments
	env  []string
	dir  string
	wrap []string
	attr *syscall.SysProcAttr

	stdin *os.File
}

// modern is a Java with virtual threads.
const modern = "/usr/lib/jvm/temurin-25-jdk-amd64/bin/java"

func (b *bench) java(o options) *server {
	s := &server{b: b, truth: filepath.Join(b.dir, "truth.json"), log: filepath.Join(b.dir, "server.log")}
	if o.java == "" {
		o.java = "java"
	}
	line := append([]string{}, o.wrap...)
	line = append(line, o.java, "-Xmx160m", "-XX:TieredStopAtLevel=1", "-javaagent:"+b.Truth+"="+s.truth, "-Djava.io.tmpdir="+b.dir)
	line = append(append(line, o.vm...), o.main...)
	cmd := exec.Command(line[0], line[1:]...) //nolint:noctx // ends with the case
	log, err := os.Create(s.log)
	b.must(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, o.dir
	if cmd.Dir == "" {
		cmd.Dir = b.dir
	}
	if cmd.Env = append(os.Environ(), o.env...); o.stdin != nil {
		cmd.Stdin = o.stdin
	}
	if cmd.SysProcAttr = o.attr; o.attr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	b.must(cmd.Start())
	s.pid = cmd.Process.Pid
	b.cleanup = append(b.cleanup, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return s
}

// program starts something that is no JVM.
func (b *bench) program(args ...string) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // ends with the case
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Stderr = os.Stderr
	b.must(cmd.Start())
	b.cleanup = append(b.cleanup, func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
}

// boot starts the application with its settings as arguments.
func (b *bench) boot(variant string, o options, settings ...string) *server {
	return b.bootOf(variant, "tomcat", boot, o, settings...)
}

func (b *bench) bootOf(variant, kind, version string, o options, settings ...string) *server {
	jar, err := b.app(b.ctx, variant, kind, version)
	b.must(err)
	o.main = append(o.main, "-jar", jar)
	for _, s := range settings {
		o.main = append(o.main, "--"+s)
	}
	return b.java(o)
}

// embedded starts a Tomcat in a program of its own.
func (b *bench) embedded(o options, args ...string) *server {
	o.main = append([]string{"-cp", b.Embedded + ":" + b.EmbedJar, "Embedded"}, args...)
	return b.java(o)
}

// connector is what the MBeans say of one.
type connector struct {
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

func (c connector) String() string {
	if c.Name == "" {
		return "no Tomcat"
	}
	return fmt.Sprintf("%d of %d threads busy, %d of %d connections", c.Busy, c.MaxThreads, c.Connections, c.MaxConnections)
}

// says is the connector on a port (0 is the first) after now; the zero value where
// there is none.
func (s *server) says(port int) connector {
	var out struct {
		At         int64       `json:"unix_ms"`
		Connectors []connector `json:"connectors"`
	}
	text, err := os.ReadFile(s.truth)
	if err != nil || json.Unmarshal(text, &out) != nil {
		return connector{}
	}
	for _, c := range out.Connectors {
		if port == 0 || c.LocalPort == port || strings.HasSuffix(strings.Trim(c.Name, `"`), "-"+strconv.Itoa(port)) {
			return c
		}
	}
	return connector{}
}

// set changes an attribute of the connector on the port over JMX.
func (s *server) set(attribute string, value int) {
	file := s.truth + ".set"
	s.b.must(os.WriteFile(file+".next", fmt.Appendf(nil, "%d %s %d\n", port, attribute, value), 0o600))
	s.b.must(os.Rename(file+".next", file))
	s.b.until("the attribute is set", func() bool { _, err := os.Stat(file); return os.IsNotExist(err) })
}

// answers waits until a connection is accepted.
func (b *bench) answers(address string) {
	b.until(address+" answers", func() bool { return b.accepted(address) })
	time.Sleep(settle) // until the connection is closed there, too
}

func (b *bench) accepted(address string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(b.ctx, "tcp", address)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

func (b *bench) connects(p int) bool { return b.accepted(fmt.Sprintf("127.0.0.1:%d", p)) }

// settle is the time in which requests that were sent are read, or wait: what is
// seen for the first time is no state yet.
const settle = 2 * time.Second

// said is what tcpdiag says of a port, or of all there are.
type said struct {
	document *e2e.Document
	listener *e2e.Listener
	all      string // the JSON
}

func (b *bench) ask(port int, args ...string) said {
	time.Sleep(settle)
	args = append([]string{"snapshot", "--output", "json"}, args...)
	if port != 0 {
		args = append(args, "--port", strconv.Itoa(port))
	}
	a := e2e.Artifacts{Tcpdiag: b.Tcpdiag}
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if b.viewer != nil {
		b.must(os.Chmod(b.Dir, 0o755)) //nolint:gosec // where tcpdiag is
	}
	out, errs, _, err := a.Run(ctx, b.viewer, args...)
	b.must(err)
	d, err := e2e.Decode(out)
	if err != nil {
		b.must(fmt.Errorf("%w\n%s", err, errs))
	}
	s := said{document: d, all: string(out)}
	if port != 0 {
		s.listener = d.On(port)
	}
	if s.listener != nil {
		v := s.listener.Verdict
		b.row.Said = strings.TrimSpace(v.Status + " " + v.Cause + ": " + v.Summary)
	}
	return s
}

// holds is an expectation; one that does not hold makes the case wrong.
func (b *bench) holds(ok bool, format string, args ...any) {
	if !ok {
		b.row.Wrong = append(b.row.Wrong, fmt.Sprintf(format, args...))
	}
}

// verdict expects one of some: "saturated max_threads", "ok", "* max_threads".
func (b *bench) verdict(s said, want ...string) {
	if s.listener == nil {
		b.holds(false, "no entry")
		return
	}
	if busy := crowded(); s.listener.Verdict.Cause == "cpu_saturated" && busy != "" {
		b.row.Skipped = "undecided, " + busy
		return
	}
	if v := s.listener.Verdict; !matches(v.Status, v.Cause, want) {
		b.holds(false, "%q is none of %q", strings.TrimSpace(v.Status+" "+v.Cause), want)
	}
}

func matches(status, cause string, want []string) bool {
	got := strings.TrimSpace(status + " " + cause)
	return slices.Contains(want, got) || slices.Contains(want, "* "+cause)
}

// crowded says that the threads of any process here have to wait for a CPU: what
// lacks one because others have it is said to.
func crowded() string {
	load := loadAverage()
	if cpus := runtime.NumCPU(); load > 2*float64(cpus) {
		return fmt.Sprintf("the load average of this machine was %.0f on %d CPUs", load, cpus)
	}
	return ""
}

func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	load, _ := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	return load
}

// silent expects that something is not said.
func (b *bench) silent(s said, texts ...string) {
	for _, t := range texts {
		b.holds(!strings.Contains(s.all, t), "says %q", t)
	}
}

// names expects that something is said.
func (b *bench) names(s said, texts ...string) {
	for _, t := range texts {
		b.holds(strings.Contains(s.all, t), "does not say %q", t)
	}
}
