package lab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const studiesHead = `# The five studies as load tests

Written by ` + "`make prove PROOF=studies`" + `: the load of each published study, sent by k6 or Locust to a real Tomcat as the
command of one ` + "`tcpdiag run`" + `. [The walk-through](../studies.md) says what their authors concluded.

| study | the command | its own numbers | tcpdiag run | the same |
|---|---|---|---|---|
`

// study is one load of a published study.
type study struct {
	name  string
	slo   time.Duration
	limit time.Duration // 0 is scenarioLimit
	serve func(*scene)
	k6    []string // NAME=value of the script, which is the first
	users int      // or Locust's
	says  func(*scene, *api.RunListener)
	inner bool // the server is a client of its own: k6's are not all
}

func studies() []study {
	const s = time.Second
	limited := func(l rig.Limits) func(*scene) { return func(b *scene) { b.roomy(l) } }
	burst := func(vus int, handler, timeout time.Duration) []string {
		return []string{"burst.js", "VUS=" + strconv.Itoa(vus), "WITHIN=1000", "TIMEOUT=" + timeout.String(), "URL=http://127.0.0.1:8080" + hello(handler)}
	}
	cause := func(status, cause string) func(*scene, *api.RunListener) {
		return func(b *scene, l *api.RunListener) {
			b.Holds(l.Status == status && l.Cause == cause, "%s by %s, should be %s by %s", l.Status, l.Cause, status, cause)
		}
	}
	// Where 60 s is a whole number of rounds, the last round's answers and the tool's timeouts fall into one
	// moment, and which was first is chance: the timeout is between two rounds there.
	return []study{
		{name: "A: 1000 clients at once, handler 5 s", slo: 60 * s, serve: limited(rig.Limits{}), k6: burst(1000, 5*s, 60*s), says: cause("saturated", "max_threads")},
		{name: "A: 3000 clients at once, handler 5 s", slo: 60 * s, serve: limited(rig.Limits{}), k6: burst(3000, 5*s, 58*s), says: cause("losing", "max_threads")},
		{name: "A: 10,000 clients at once, 1000 threads, handler 5 s", slo: 60 * s, limit: 5 * time.Minute, serve: limited(rig.Limits{Threads: 1000}), k6: burst(10_000, 5*s, 60*s), says: cause("losing", "max_connections")},
		{name: "B: a servlet that calls itself 420, then 600 deep, 1024 files", serve: func(b *scene) { b.selfCaller(1024) }, k6: []string{"nested.js", "DEPTHS=420,600", "MS=8000", "URL=http://127.0.0.1:8080/nested"}, says: func(b *scene, l *api.RunListener) {
			b.Holds(l.Cause == "open_files", "cause %s, should be open_files", l.Cause)
		}, inner: true},
		{name: "C: 10 clients, 2 threads, 3 connections, accept count 1, handler 3 s", slo: 20 * s, serve: limited(rig.Limits{Threads: 2, MaxConnections: 3, AcceptCount: 1}), k6: []string{"burst.js", "VUS=10", "WITHIN=250", "TIMEOUT=20s", "URL=http://127.0.0.1:8080" + hello(3*s)}, says: cause("losing", "max_connections")},
		{name: "C: 5000 clients at once, 200 threads, handler 3 s", slo: 60 * s, serve: limited(rig.Limits{}), k6: burst(5000, 3*s, 58500*time.Millisecond), says: cause("losing", "max_threads")},
		{name: "D: virtual threads, half a CPU, 300 clients a second, 5 ms of CPU each", slo: 5 * s, serve: func(b *scene) {
			server := b.virtualServer()
			b.Quota(b.ServerOf(server.PID), "0.5")
		}, k6: []string{"open.js", "RATE=300", "SECONDS=15", "TIMEOUT=5s", "URL=http://127.0.0.1:8080/burn?ms=5"}, says: func(b *scene, l *api.RunListener) {
			b.Holds(l.Cause == "cpu_throttled" || l.Cause == "cpu_saturated", "cause %s, should name the CPU", l.Cause)
		}},
		{name: "E: 150 users who keep their connections, defaults", serve: limited(rig.Limits{}), users: 150, says: cause("ok", "")},
		{name: "E: 150 users who keep their connections, 100 connections, accept count 50", serve: limited(rig.Limits{MaxConnections: 100, AcceptCount: 50}), users: 150, says: cause("losing", "keep_alive_idle")},
	}
}

// TestStudies sends each study's load as the command of one tcpdiag run. TCPDIAG_STUDIES is a folder
// for their reports.
func TestStudies(t *testing.T) {
	var names []string
	for _, s := range studies() {
		names = append(names, s.name)
	}
	table := rig.Open("docs/results/studies.md", studiesHead, names)
	for i, s := range studies() {
		t.Run(s.name, func(t *testing.T) {
			if !rig.Alone(t, cmp.Or(s.limit, scenarioLimit)) {
				return
			}
			c := rig.New(t, table, s.name)
			b := &scene{Case: c, Artifacts: c.Artifacts()}
			s.run(b, filepath.Join(cmp.Or(os.Getenv("TCPDIAG_STUDIES"), c.Dir), fmt.Sprintf("study-%d.html", i+1)))
		})
	}
}

func (s *study) run(b *scene, report string) {
	command, shown := s.command(b)
	s.serve(b)
	file := filepath.Join(b.Dir, "run.json")
	args := []string{"run", "--port", "8080", "--quiet", "--settle", "40s", "--json", file, "--report", report}
	if s.slo > 0 {
		args = append(args, "--slo", s.slo.String())
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(b.Ctx, b.Tcpdiag, append(append(args, "--"), command...)...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &said, rig.DiesWithParent()
	cmd.Env = append(cmd.Environ(), "MS=5", "NO_COLOR=1")
	err := cmd.Run()
	b.Log(said.String())
	b.Must(err)
	doc, err := api.ReadRun(file)
	b.Must(err)
	b.Holds(len(doc.Listeners) == 1 && doc.Listeners[0].Clients != nil, "one listener with clients")
	if len(doc.Listeners) != 1 || doc.Listeners[0].Clients == nil {
		return
	}
	l := &doc.Listeners[0]
	counted, _ := json.Marshal(l.Clients)
	b.Log(string(counted))
	own, same := s.compared(b, out.Bytes(), l.Clients)
	s.says(b, l)
	text := fmt.Sprintf("%d clients: %d served, %d turned away; **%s** `%s`", l.Clients.Offered, l.Clients.Served, l.Clients.TurnedAway, l.Status, cmp.Or(l.Cause, "–"))
	if k := l.Knee; k != nil && k.AtOnce != nil {
		text += fmt.Sprintf("; room for %d at once", *k.AtOnce)
	} else if k != nil && k.ClientsPerSecond > 0 && s.users == 0 {
		text += fmt.Sprintf("; up to %.0f clients/s served", k.ClientsPerSecond)
	}
	if set := l.Settings; set != nil && set.Smallest != nil {
		text += fmt.Sprintf("; threads %d, connections %d, accept count %d would have served all", set.Smallest.Threads, set.Smallest.MaxConnections, set.Smallest.AcceptCount)
	}
	b.Row.Truth, b.Row.Said = own, text
	b.Row.Cells = []string{"`" + shown + "`", own, text, same}
	if len(b.Row.Wrong) > 0 {
		b.Row.Cells[3] = "NO: " + strings.Join(b.Row.Wrong, "; ")
	}
}

// command is the load tool's, and how it is shown: without the folders of this machine.
func (s *study) command(b *scene) (command []string, shown string) {
	if s.users > 0 {
		program := locust(b.Case)
		args := []string{"--headless", "--only-summary", "-H", "http://127.0.0.1:8080", "-u", strconv.Itoa(s.users), "-r", strconv.Itoa(s.users), "-t", "16s", "--stop-timeout", "0", "-f"}
		return append(append([]string{program}, args...), b.Source("internal/test/lab/locust/users.py")), "locust " + strings.Join(args, " ") + " users.py"
	}
	program := k6(b.Case)
	args := []string{"run", "--no-usage-report", "--quiet", "--address", ""}
	shown = "k6 run"
	for _, set := range s.k6[1:] {
		args = append(args, "--env", set)
		shown += " -e " + set
	}
	return append(append([]string{program}, args...), b.Source("internal/test/lab/k6/"+s.k6[0])), shown + " " + s.k6[0]
}

// compared is what the tool counted, beside what was seen of it.
func (s *study) compared(b *scene, out []byte, c *api.RunClients) (own, same string) {
	switch {
	case s.users > 0:
		v, err := parseLocust(out)
		b.Must(err)
		b.Holds(int(c.Offered) == s.users, "%d clients, should be %d users with a connection each", c.Offered, s.users)
		b.Holds(within(float64(c.Served), float64(v.UsersAnswered), 1), "%d served, should be %d", c.Served, v.UsersAnswered) // an answer and the end may cross
		return fmt.Sprintf("%d requests of %d users, %d failed", v.Requests, v.UsersAnswered, v.Failures), "yes: a user is a connection"
	case s.k6[0] != "burst.js":
		var sum struct{ OK, Failed, Dropped int }
		b.Must(json.Unmarshal(out, &sum))
		if s.inner {
			b.Holds(sum.OK == 1 && sum.Failed == 1, "%d answered, %d failed", sum.OK, sum.Failed)
			b.Holds(c.Offered > 900, "the servlet's own calls are clients, too")
			return fmt.Sprintf("%d answered, %d failed", sum.OK, sum.Failed), "k6's two clients; the others are the servlet's own calls"
		}
		s.equal(b, sum.OK, sum.OK+sum.Failed, c)
		return fmt.Sprintf("%d answered, %d failed", sum.OK, sum.Failed), "yes"
	}
	r, err := parseK6(out)
	b.Must(err)
	all := r.ok + r.connectTimeout + r.readTimeout + r.reset + r.refused + r.other
	s.equal(b, r.ok, all, c)
	return r.String(), "yes"
}

// equal holds the numbers of clients against each other: within one in a thousand, as an answer and a
// timeout may cross, and those of whom it is said that it is not known, one in a hundred at most.
func (s *study) equal(b *scene, ok, all int, c *api.RunClients) {
	most, unknown := float64(max(1, all/1000)), float64(c.Unknown())
	b.Holds(within(float64(c.Offered), float64(all), most), "%d clients, %d were sent", c.Offered, all)
	b.Holds(unknown <= float64(all)/100, "of %.0f of %d clients it is not known what became of them", unknown, all)
	b.Holds(within(float64(c.Served)+unknown/2, float64(ok), most+unknown/2), "%d served, %d had an answer", c.Served, ok)
}

func within(a, b, most float64) bool { return a-b <= most && b-a <= most }
