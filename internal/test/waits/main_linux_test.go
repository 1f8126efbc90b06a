package waits

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

const head = `# What threads wait for

Written by ` + "`make prove PROOF=waits`" + `: what the threads of a real server wait for, held against the
backends' own numbers. What it means is in [how it was measured](waits-method.md).

| case | what happened | what it said | |
|---|---|---|---|
`

var decoyed = flag.Duration("decoy", time.Minute, "how long decoys are tried: a subscription and a long poll that are always in flight")

func TestWaits(t *testing.T) {
	rig.Cases(t, "docs/results/waits.md", head, cases(), func(w waitCase) (string, func(*rig.Case)) {
		return w.name, func(c *rig.Case) {
			c.Must(os.Chmod(c.Dir, 0o755)) //nolint:gosec // PostgreSQL does not run as root
			jar := c.Built("internal/test/waits/app", "waiting", "waiting.jar")
			w.run(&stage{Case: c, jar: jar, java: []string{"java"}, decoyed: *decoyed})
		}
	})
}

// stage is a case with the application in it.
type stage struct {
	*rig.Case
	jar     string
	java    []string // what the application is started with
	flags   []string // of the snapshots, besides
	decoyed time.Duration
}

// app starts the application with settings on a port.
func (s *stage) app(port int, settings ...string) {
	s.Helper()
	text := fmt.Sprintf("server.port=%d\nserver.tomcat.threads.max=20\nspring.datasource.url=jdbc:postgresql://127.0.0.1:%d/orders\n"+
		"spring.datasource.username=app\nspring.datasource.password=secret\nspring.data.redis.host=127.0.0.1\nspring.data.redis.port=%d\nspring.data.redis.timeout=120s\n", port, postgresPort, redisPort)
	dir, err := os.MkdirTemp(s.Dir, "app-")
	s.Must(err)
	s.Must(os.WriteFile(dir+"/application.properties", []byte(text+strings.Join(settings, "\n")+"\n"), 0o600))
	args := slices.Concat(s.java, []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", s.jar})
	cmd := exec.CommandContext(s.Ctx, args[0], args[1:]...)
	cmd.Dir = dir
	s.Run(cmd)
	s.Until("the application", func() bool { return s.get(port, "/hello") == nil })
}

func (s *stage) get(port int, path string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return rig.Fetch(s.Ctx, client, fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
}

// come has clients ask for a path until the case ends.
func (s *stage) come(n int, path string) *rig.Visitors {
	return s.Visit(n, fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
}

// backend answers each line after a while.
func (s *stage) backend(delay time.Duration) *rig.Backend {
	return (&rig.Backend{Delay: delay}).Serve(s.Case)
}

// ask takes a snapshot of a port.
func (s *stage) ask(port int) *api.Listener {
	s.Helper()
	l, _ := s.askAs(s.Outside, port)
	return l
}

// askAs takes one behind a prefix, which makes it another user's.
func (s *stage) askAs(prefix []string, port int) (*api.Listener, *api.Snapshot) {
	s.Helper()
	args := append(slices.Clone(prefix), s.Tcpdiag(), "snapshot", "--port", fmt.Sprint(port), "-o", "json")
	args = append(args, s.flags...)
	if s.Outside != nil {
		args = append(args, "--all-namespaces")
	}
	out, err := exec.CommandContext(s.Ctx, args[0], args[1:]...).Output()
	var said api.Snapshot
	if e := json.Unmarshal(out, &said); e != nil {
		s.Must(fmt.Errorf("%w: %w", e, err))
	}
	return s.listener(&said, port), &said
}

// listener is what a document says of a port.
func (s *stage) listener(said *api.Snapshot, port int) *api.Listener {
	s.Helper()
	for i := range said.Listeners {
		if int(said.Listeners[i].Port) == port {
			s.Row.Said = said.Listeners[i].Verdict.Summary
			return &said.Listeners[i]
		}
	}
	s.Must(fmt.Errorf("nothing on port %d", port))
	return nil
}
