package deployments

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const newcomersHead = `# Five situations

Written by ` + "`make prove PROOF=newcomers`" + `: what somebody types who has not read the manual, and follows what is printed, until the step
is on the screen that is right there. Lines are those of all screens up to that step; each screen is 80 columns wide.

| situation | commands | lines read | the step | |
|---|---|---|---|---|
`

// newcomer is in trouble, and does what is printed.
type newcomer struct {
	name  string
	start func(*rig.Case)
	types []string            // the first command; TCPDIAG is the program
	who   *syscall.Credential // nil is root
	right string              // what the right step has in it
}

func newcomers() []newcomer {
	busy := func(c *rig.Case) {
		serve(c, boot(4, 20, 5))
		load := together(60, "/hello?ms=8000", 30*time.Second, 60*time.Second)
		comes(c, load)
	}
	return []newcomer{
		{name: "the probe fails at 3 am", start: busy, types: []string{"TCPDIAG"}, right: "thread-dump"},
		{name: "a load test loses clients", start: func(c *rig.Case) { serve(c, boot(4, 20, 5)) }, types: []string{
			"TCPDIAG", "run", "--port", "8080", "--", "sh", "-c", "for i in $(seq 60); do curl -s -o /dev/null -m 4 'http://127.0.0.1:8080/hello?ms=2000' & done; wait",
		}, right: "server.tomcat.threads.max 4 → "},
		{name: "is it us or the database", start: func(c *rig.Case) {
			(&rig.Backend{Address: fmt.Sprint("127.0.0.1:", rig.BackendPort)}).Serve(c)
			c.Embedded(rig.JVM{}, "protocol=org.apache.coyote.http11.Http11NioProtocol", "port=8080", "maxThreads=10")
			c.Until("the server", func() bool { return c.Connects(rig.Port) })
			comes(c, together(30, "/?to=9000&hold=20000", 30*time.Second, 60*time.Second))
		}, types: []string{"TCPDIAG"}, right: "127.0.0.1:9000"},
		{name: "the server is in another network namespace", start: func(c *rig.Case) {
			const port = 18089 // the machine may have other servers, in other namespaces
			c.Boot("none", rig.JVM{}, append(boot(4, 20, 5).settings, fmt.Sprint("server.port=", port))...)
			c.Until("the server", func() bool { return c.Connects(port) })
			load := together(60, "/hello?ms=8000", 30*time.Second, 60*time.Second)
			load.Address = fmt.Sprint("127.0.0.1:", port)
			comes(c, load)
		}, types: []string{"unshare", "--net", "TCPDIAG", "18089"}, right: "thread-dump"},
		{name: "as an ordinary user", start: busy, types: []string{"TCPDIAG", "8080"}, who: &syscall.Credential{Uid: 65534, Gid: 65534}, right: "thread-dump"},
	}
}

// comes lets clients loose, and waits until they are there.
func comes(c *rig.Case, load demo.BurstOptions) {
	go rig.Burst(c.Ctx, load)
	c.Wait(3 * time.Second)
}

// TestNewcomers counts what has to be read.
func TestNewcomers(t *testing.T) {
	rig.Cases(t, "docs/results/newcomers.md", newcomersHead, newcomers(), func(n newcomer) (string, func(*rig.Case)) {
		return n.name, func(c *rig.Case) {
			n.start(c)
			n.follow(c)
		}
	})
}

// most is how many commands somebody types before giving up.
const most = 3

// follow types the first command, and then what is printed.
func (n *newcomer) follow(c *rig.Case) {
	words, who, typed, read := n.types, n.who, []string(nil), 0
	step := ""
	for range most {
		typed = append(typed, "`"+strings.ReplaceAll(strings.Join(words, " "), "TCPDIAG", "tcpdiag")+"`")
		said := n.typed(c, words, who)
		c.Log(said)
		lines := strings.Split(strings.TrimRight(said, "\n"), "\n")
		for i, line := range lines {
			if strings.Contains(line, n.right) {
				step, lines = strings.TrimSpace(line), lines[:i+1]
				break
			}
		}
		read += len(lines)
		next := regexp.MustCompile(`sudo ((?:nsenter [^;\n]*?)?tcpdiag[^;\n)(]*)`).FindStringSubmatch(strings.ReplaceAll(said, "\n        ", " "))
		if step != "" || next == nil {
			break
		}
		words, who = strings.Fields(strings.ReplaceAll(next[1], "tcpdiag", "TCPDIAG")), nil
	}
	c.Holds(step != "", "%q was not on the screen after %v", n.right, typed)
	c.Row.Cells = []string{strings.Join(typed, ", then "), fmt.Sprint(read), step, c.Row.Result()}
}

// typed is what a command prints on a terminal of 80 columns.
func (n *newcomer) typed(c *rig.Case, words []string, who *syscall.Credential) string {
	args := make([]string, len(words))
	for i, word := range words {
		if args[i] = word; word == "TCPDIAG" {
			args[i] = c.Tcpdiag()
		}
	}
	cmd := exec.CommandContext(c.Ctx, args[0], args[1:]...)
	cmd.Env = append(cmd.Environ(), "COLUMNS=80", "NO_COLOR=1")
	if who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	out, _ := cmd.CombinedOutput() // the exit code is of no interest
	return string(out)
}
