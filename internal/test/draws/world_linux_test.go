package draws

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// fifo is what the handler of files opens, in the server's working directory.
const fifo = "fifo"

// uidOf is the ids of a server that does not run as root: its own, as RLIMIT_NPROC counts
// a user's threads.
func uidOf(number int) uint32 { return uint32(20000 + number/perServer) } //nolint:gosec // a small number

// world is a server, its backend and an agent that watches it, in a network namespace.
type world struct {
	*rig.Case
	draw  draw // of which the server is
	s     *rig.Server
	agent *rig.Agent
	said  counts // the agent's before the draw

	unanswered float64  // the most that the agent has counted
	account    *account // of the clients that come now, nil where none do
	far        *far     // where they come from, nil for here

	after  []func()  // what ends with the draw
	clear  func()    // what the next draw begins with, nil for nothing
	failed time.Time // when the last client of the draw before got no answer
}

// later has something done when the draw has ended.
func (w *world) later(do func()) { w.after = append(w.after, do) }

func (w *world) unwind() {
	for _, do := range w.after {
		do()
	}
	w.after = nil
}

// open starts all of it.
func open(c *rig.Case, d draw) *world {
	w := &world{Case: c, draw: d}
	(&rig.Backend{Address: fmt.Sprint("127.0.0.1:", rig.BackendPort)}).Serve(c)
	c.Must(os.Chmod(c.Dir, 0o755)) //nolint:gosec // other users run what lies there
	c.Must(syscall.Mkfifo(filepath.Join(c.Dir, fifo), 0o666))
	w.start()
	agent, err := rig.Artifacts{Tcpdiag: c.Tcpdiag()}.StartAgent(c.Ctx, rig.AgentPort, "--port", strconv.Itoa(rig.Port))
	c.Must(err)
	c.AtEnd(func() { _, _ = agent.Stop() })
	w.agent = agent
	w.said = w.count()
	return w
}

// start starts the server, again where there was one.
func (w *world) start() {
	w.stop()
	s := w.draw.server
	j := rig.JVM{}
	if s.java == "25" {
		j.Java = w.Java25()
	}
	if s.user == "app" {
		id := uidOf(w.draw.number)
		j.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	if s.kind == "boot" {
		w.boot(&j)
	} else {
		w.tomcat(&j)
	}
	if s.user == "app" {
		id := fmt.Sprint(uidOf(w.draw.number))
		w.Do("chown", "-R", id+":"+id, w.Dir)
	}
	w.s = w.Java(j)
	w.Until("the server listens", func() bool { _, _, there := sockets(); return there }) // who asks before is refused, and counted
	v := w.visitor()
	v.ask("hello")
	v.d.reply = 20 * time.Second
	if w.account != nil { // while others come it is one of the clients
		v.account = w.account
	}
	fed, enough := context.WithCancel(w.Ctx) // clients that come meanwhile may have all threads wait for the writer
	go func() {
		for fed.Err() == nil {
			w.feed()
			rig.Wait(fed, 50*time.Millisecond)
		}
	}()
	w.Until("the server answers", func() bool { return v.connection(w.Ctx) == answered })
	enough()
	if w.agent != nil { // whose series of the listener are absent while it is down
		w.Until("the agent has seen it", func() bool {
			text, err := w.agent.Get(w.Ctx, "/api/v1/snapshot")
			return err == nil && !slices.Contains([]string{"", "down"}, w.decode(text).status)
		})
	}
	if !s.virtual {
		w.Until("the MBeans are there", func() bool { return w.s.Says(rig.Port).MaxConnections > 0 })
	}
}

// stop ends the server.
func (w *world) stop() {
	if w.s != nil {
		w.ends(w.s.PID)
		w.s = nil
	}
}

func (w *world) ends(pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL)
	w.Until("the server has ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	w.Until("its listener is closed", func() bool { _, _, there := sockets(); return !there }) // other threads of it may live on
}

func (w *world) visitor() *visitor {
	v := &visitor{d: w.draw, address: fmt.Sprint("127.0.0.1:", rig.Port), h2: w.draw.server.protocol == "h2c"}
	if w.draw.server.protocol == "tls" {
		v.config = rig.Unverified()
	}
	return v
}

// readable is a copy of what is in root's cache.
func (w *world) readable(path string) string {
	return w.Made(filepath.Join(w.Kit.Dir, filepath.Base(path)), func(to string) error {
		next := fmt.Sprintf("%s-%d", to, os.Getpid())
		w.Do("cp", "-r", path, next)
		w.Do("chmod", "-R", "a+rX", next)
		if os.Rename(next, to) != nil { // another world was faster
			return os.RemoveAll(next)
		}
		return nil
	})
}

// set are the limits that are no default, by their names.
func (s server) set(threads, connections, backlog, spare string) (names, values []string) {
	for _, one := range []struct {
		name         string
		value, usual int
	}{{threads, s.threads, defaultThreads}, {connections, s.connections, defaultConnections}, {backlog, s.backlog, defaultBacklog}, {spare, 2, 0}} {
		if one.value != one.usual {
			names, values = append(names, one.name), append(values, strconv.Itoa(one.value))
		}
	}
	return names, values
}

func (w *world) boot(j *rig.JVM) {
	s := w.draw.server
	jar := w.readable(w.Built("internal/test/draws/app", "drawn-"+s.version, "drawn.jar", "-Dboot="+s.version))
	names, values := s.set("server.tomcat.threads.max", "server.tomcat.max-connections", "server.tomcat.accept-count", "server.tomcat.threads.min-spare")
	names, values = append(names, "server.tomcat.mbeanregistry.enabled"), append(values, "true")
	var file, args []string
	switch s.where {
	case "arguments":
		for i := range names {
			args = append(args, "--"+names[i]+"="+values[i])
		}
	case "environment":
		for i, n := range names {
			j.Env = append(j.Env, strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(n, "-", ""), ".", "_"))+"="+values[i])
		}
	case "properties file":
		for i := range names {
			file = append(file, names[i]+"="+values[i])
		}
	case "YAML file":
		text := ""
		for i := range names {
			text += names[i] + ": " + values[i] + "\n"
		}
		w.Write("application.yml", text)
	case "-D":
		for i := range names {
			j.VM = append(j.VM, "-D"+names[i]+"="+values[i])
		}
	case "SPRING_APPLICATION_JSON":
		var parts []string
		for i := range names {
			parts = append(parts, fmt.Sprintf("%q: %s", names[i], values[i]))
		}
		j.Env = append(j.Env, "SPRING_APPLICATION_JSON={"+strings.Join(parts, ", ")+"}")
	}
	if s.named {
		file = append(file, fmt.Sprintf("spring.datasource.url=jdbc:postgresql://127.0.0.1:%d/orders", rig.BackendPort), fmt.Sprint("spring.datasource.hikari.maximum-pool-size=", s.pool))
	}
	if s.virtual {
		file = append(file, "spring.threads.virtual.enabled=true")
	}
	switch s.protocol {
	case "h2c":
		file = append(file, "server.http2.enabled=true")
	case "tls":
		file = append(file, "server.ssl.key-store="+w.KeystoreFile(), "server.ssl.key-store-password="+rig.KeystorePassword, "server.ssl.key-store-type=PKCS12")
		w.Must(os.Chmod(w.KeystoreFile(), 0o644)) //nolint:gosec // a test's
	}
	w.Write("application.properties", strings.Join(file, "\n")+"\n")
	j.Main = append([]string{"-jar", jar}, args...)
}

const (
	workPage = `<%@page trimDirectiveWhitespaces="true" contentType="text/plain"%><%
final javax.servlet.jsp.JspWriter to = out;
java.util.Map<String, String> asked = new java.util.HashMap<String, String>();
String query = request.getQueryString();
for (String pair : query.split("&")) {
  int at = pair.indexOf('=');
  asked.put(pair.substring(0, at), pair.substring(at + 1));
}
draws.Work.run(asked, request.getInputStream(), new draws.Work.Sink() {
  public void send() throws java.io.IOException { to.print("x"); to.flush(); }
});
%>`
	laterPage = `<%@page trimDirectiveWhitespaces="true" contentType="text/plain"%><%
request.setAttribute("org.apache.catalina.ASYNC_SUPPORTED", Boolean.TRUE);
draws.Work.later(request.startAsync(), Long.parseLong(request.getParameter("ms")));
%>`
)

func (w *world) tomcat(j *rig.JVM) {
	s := w.draw.server
	home := w.readable(w.Distribution(s.version))
	names, values := s.set("maxThreads", "maxConnections", "acceptCount", "minSpareThreads")
	before, connector := "", fmt.Sprintf(`<Connector port="%d" connectionTimeout="60000"`, rig.Port)
	switch s.protocol {
	case "nio2":
		connector += ` protocol="org.apache.coyote.http11.Http11Nio2Protocol"`
	case "ajp":
		connector += ` protocol="AJP/1.3" secretRequired="false" address="127.0.0.1"`
	case "tls":
		connector += ` SSLEnabled="true" scheme="https" secure="true"`
	}
	for i, n := range names {
		switch {
		case s.where == "an Executor" && (n == "maxThreads" || n == "minSpareThreads"):
			before += fmt.Sprintf(` %s="%s"`, n, values[i])
		case s.where == "placeholders":
			connector += fmt.Sprintf(` %s="${of.%s}"`, n, n)
			j.VM = append(j.VM, fmt.Sprintf("-Dof.%s=%s", n, values[i]))
		default:
			connector += fmt.Sprintf(` %s="%s"`, n, values[i])
		}
	}
	if s.where == "an Executor" {
		before = `<Executor name="shared" namePrefix="exec-"` + before + "/>\n"
		connector += ` executor="shared"`
	}
	connector += ">"
	if s.protocol == "tls" {
		connector += fmt.Sprintf(`<SSLHostConfig><Certificate certificateKeystoreFile="%s" certificateKeystorePassword="%s"/></SSLHostConfig>`, w.KeystoreFile(), rig.KeystorePassword)
		w.Must(os.Chmod(w.KeystoreFile(), 0o644)) //nolint:gosec // a test's
	}
	base := w.Base(home, before+connector+"</Connector>")
	work, later := workPage, laterPage
	if !strings.HasPrefix(s.version, "8.5") && !strings.HasPrefix(s.version, "9.") {
		work = strings.ReplaceAll(work, "javax.", "jakarta.")
	}
	w.Write("base/webapps/ROOT/work.jsp", work)
	w.Write("base/webapps/ROOT/later.jsp", later)
	classes := w.Made(filepath.Join(w.Kit.Dir, "work-classes"), func(to string) error {
		next := fmt.Sprintf("%s-%d", to, os.Getpid())
		w.Do("javac", "--release", "8", "-Xlint:-options", "-nowarn", "-d", next, w.Source("internal/test/draws/app/src/main/java/draws/Work.java"))
		if os.Rename(next, to) != nil {
			return os.RemoveAll(next)
		}
		return nil
	})
	w.Must(os.MkdirAll(filepath.Join(base, "webapps/ROOT/WEB-INF"), 0o755)) //nolint:gosec // no secret
	w.Do("cp", "-r", classes, filepath.Join(base, "webapps/ROOT/WEB-INF/classes"))
	jars := filepath.Join(home, "bin/bootstrap.jar") + ":" + filepath.Join(home, "bin/tomcat-juli.jar")
	j.Main = []string{"-cp", jars, "-Dcatalina.base=" + base, "-Dcatalina.home=" + home, "org.apache.catalina.startup.Bootstrap", "start"}
}

// drain waits until the server has nothing to do, and says for how long; it is started
// again where it does not become so.
func (w *world) drain() time.Duration {
	begun := time.Now()
	for first := true; time.Since(begun) < 6*time.Second; first = false {
		w.feed()
		if _, inside, _ := sockets(); inside == 0 && (w.draw.server.virtual || w.s.Says(rig.Port).Busy == 0) {
			if first {
				return 0
			}
			return time.Since(begun)
		}
		w.Wait(50 * time.Millisecond)
	}
	w.start()
	return time.Since(begun)
}

// feed lets those go on who wait for a writer of the FIFO.
func (w *world) feed() {
	if f, err := os.OpenFile(filepath.Join(w.Dir, fifo), os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		_ = f.Close()
	}
}

// proxied starts what stands before the server, if the draw has it, and says where.
func (w *world) proxied() string {
	if !w.draw.proxy {
		return ""
	}
	target := &url.URL{Scheme: "http", Host: fmt.Sprint("127.0.0.1:", rig.Port)}
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{MaxIdleConnsPerHost: w.draw.users, DialContext: (&net.Dialer{Timeout: w.draw.connect}).DialContext, ResponseHeaderTimeout: w.draw.reply}
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.Must(err)
	server := &http.Server{Handler: proxy} //nolint:gosec // the draw's own clients
	go func() { _ = server.Serve(listener) }()
	w.later(func() { _ = server.Close(); transport.CloseIdleConnections() })
	return listener.Addr().String()
}
