package deployments

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// onVirtual is what 40 clients ask of virtual threads, ten of them two seconds earlier.
type onVirtual struct {
	name, path, truth string
	carriers          bool     // the requests of the 30 are not begun: all carriers are taken
	verdict           []string // where the 30 have begun
}

// virtual are requests on virtual threads: what they wait for, and who has the carriers.
func virtual() (list []deployment) {
	waits := fmt.Sprintf("op=pool&size=3&ms=60000&to=%d", rig.BackendPort)
	for _, boot := range []string{"3.5.16", "4.0.9"} {
		for _, java := range []string{"21", "25"} {
			for _, one := range []onVirtual{
				{"wait for a class to be initialized, pinned", "op=init", "pinned to the carriers, of which there are two", true, nil},
				{"wait for one lock (synchronized)", "op=lock&ms=600000", "one has the lock", java == "21", []string{"ok"}},
				{"wait for one lock (ReentrantLock)", "op=hold&ms=600000", "one has the lock", false, []string{"ok"}},
				{"wait for a pool of 3 connections", waits, "3 have a connection to the backend", false, []string{"saturated connection_pool"}},
				{"sleep", "op=sleep&ms=600000", "all are begun", false, []string{"ok"}},
				{"compute", "op=burn&ms=600000", "two compute on the carriers", true, nil},
			} {
				list = append(list, deployment{
					fmt.Sprintf("virtual threads that %s, Boot %s, Java %s", one.name, boot, java),
					func(c *rig.Case) { one.run(c, boot, java) },
				})
			}
		}
	}
	return list
}

func (v onVirtual) run(c *rig.Case, boot, java string) {
	jvm := c.Java25
	if java == "21" {
		jvm = func() string { return c.JavaOf(rig.Java21) }
	}
	(&rig.Backend{Address: fmt.Sprint("127.0.0.1:", rig.BackendPort)}).Serve(c)
	jar := c.Built("internal/test/draws/app", "drawn-"+boot, "drawn.jar", "-Dboot="+boot)
	s := c.Java(rig.JVM{Java: jvm(), Main: []string{
		"-jar", jar, "--spring.threads.virtual.enabled=true", "--server.tomcat.mbeanregistry.enabled=true",
		fmt.Sprintf("--spring.datasource.url=jdbc:postgresql://127.0.0.1:%d/orders", rig.BackendPort), "--spring.datasource.hikari.maximum-pool-size=3",
	}})
	c.Answers("127.0.0.1:8080")
	text := rig.Get("/work.jsp?" + v.path)
	c.Hold(rig.Clients{N: 10, Text: text})
	c.Until("the first are connected", func() bool { return s.Says(rig.Port).Connections >= 10 })
	c.Wait(2 * time.Second)
	w := c.Hold(rig.Clients{N: 30, Text: text})
	c.Until("all are connected", func() bool { return w.Connected.Load() == 30 })
	c.Wait(2 * time.Second)
	args := []string{"--interval", "3s"}
	own := ""
	if java == "25" {
		own = "; the JVM: " + scheduler(c, s.PID)
		args = append(args, "--thread-dump")
	}
	c.Row.Truth = fmt.Sprintf("%s; %s%s", s.Says(rig.Port), v.truth, own)
	said := c.Ask(rig.Port, args...)
	said.Silent("nothing is held up", "threads.max", "max_threads", "-1 ")
	if !v.carriers {
		said.Verdict(v.verdict...)
		said.Silent("carriers_taken")
		return
	}
	said.Verdict("warning", "saturated cpu_saturated")
	said.Names("to be read")
	if java == "25" {
		said.Names("carriers_taken")
		return
	}
	c.Row.Unknown = true // a JVM before 24 does not tell
}

// scheduler is the JVM's own account of its carriers.
func scheduler(c *rig.Case, pid int) string {
	out, err := exec.CommandContext(c.Ctx, filepath.Join(filepath.Dir(rig.ModernJava), "jcmd"), fmt.Sprint(pid), "Thread.vthread_scheduler").Output()
	c.Must(err)
	_, pool, _ := strings.Cut(string(out), "[")
	pool, _, _ = strings.Cut(pool, "]")
	return strings.Join(strings.Fields(pool), " ")
}
