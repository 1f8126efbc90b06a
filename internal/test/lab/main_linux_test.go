package lab

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// scenario is one experiment. load says what the clients do and how patient they are.
type scenario struct {
	name   string
	load   string
	sysctl map[string]string // of its namespace
	limit  time.Duration     // 0 is scenarioLimit
	run    func(*scene)
}

// scenarioLimit ends a scenario that hangs.
const scenarioLimit = 3 * time.Minute

// scenarios are all of them in the order of the table.
func scenarios() []scenario {
	return slices.Concat(concurrent(), selfCalling(), settings(), virtual(), keepAlive(), confused(), confusedClients(), healthy())
}

func TestLab(t *testing.T) {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	table := rig.Open("docs/results/lab.md", "", names)
	table.Head(heading)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			if s.limit == 0 {
				s.limit = scenarioLimit
			}
			if !rig.Alone(t, s.limit) {
				return
			}
			b := newScene(t, table, s)
			s.run(b)
		})
	}
}

// newScene prepares a scenario in a namespace of its own.
func newScene(t *testing.T, table *rig.Table, s scenario) *scene {
	c := rig.New(t, table, s.name)
	b := &scene{Case: c, Artifacts: c.Artifacts()}
	switch {
	case strings.HasPrefix(s.load, "k6"):
		b.k6Program = k6(c)
	case strings.HasPrefix(s.load, "Locust"):
		b.locustProgram = locust(c)
	}
	c.SetSysctl(s.sysctl)
	c.AtLast(func() {
		plan := b.planText
		if plan == "" {
			plan = "–"
		}
		c.Row.Truth, c.Row.Said = b.clientsText, b.saidText
		c.Row.Cells = []string{s.load, b.clientsText, b.saidText, plan, agreement(c.Row)}
		for i, text := range c.Row.Cells {
			c.Row.Cells[i] = strings.ReplaceAll(text, "; ", "<br>")
		}
	})
	return b
}

func agreement(r rig.Row) string {
	switch {
	case len(r.Wrong) > 0:
		return "NO: " + strings.Join(r.Wrong, "; ")
	case r.Skipped != "":
		return r.Skipped
	}
	return "yes"
}

// heading is the text before the rows.
func heading(rows []string) string {
	agree := 0
	for _, row := range rows {
		if strings.HasSuffix(row, "| yes |") {
			agree++
		}
	}
	return fmt.Sprintf(`# Results of the lab

Written by %[1]smake prove PROOF=lab%[1]s, the last row on %[2]s: real Tomcats, overloaded the way published experiments did it, each in a network namespace of its own. tcpdiag was given the port and nothing else. %[3]d of %[4]d agree.

Linux %[5]s on %[6]d processors; %[7]s, sample server on Spring Boot %[8]s, k6 %[9]s, Locust %[10]s. Load of the machine: %.1[11]f.

"ok" is an answer of status 200; a packet is not a client. What tcpdiag said is its worst verdict during the load, with the numbers of that moment; losses are those of the last 60 s. Plan's tolerance where a scenario holds it to one: 2 %% for each outcome, 5 %% for the time.

| scenario | load and timeouts | the clients counted | tcpdiag said | %[1]splan%[1]s predicted | agree |
|---|---|---|---|---|---|
`, "`", time.Now().UTC().Format("2006-01-02 15:04"), agree, len(rows), firstLine("/proc/sys/kernel/osrelease"), runtime.NumCPU(),
		javaVersion(), rig.BootVersion, k6Version, locustVersion, rig.LoadAverage())
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// javaVersion is that of java -version: `openjdk version "17.0.19"`.
func javaVersion() string {
	out, _ := exec.Command("java", "-version").CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	return "Java " + strings.Trim(strings.Fields(line + ` "" ""`)[2], `"`)
}

func TestScenariosHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range scenarios() {
		require.False(t, seen[s.name], s.name)
		seen[s.name] = true
		require.NotEmpty(t, s.load, s.name)
		require.NotNil(t, s.run, s.name)
	}
	for _, published := range strings.Fields("A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 B1 B2 B3 C1 C2 C3 C4 C5 D1 D2 E1 E2 F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12") {
		require.True(t, seen[published] || has(seen, published+"-"), published)
	}
}

func has(names map[string]bool, prefix string) bool {
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
