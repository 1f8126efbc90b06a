package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// What a cell says.
const (
	seen   = "✓"
	partly = "~" // the owner by its threads' names; a limit with the note that it is uncertain
	unseen = "–"
)

// row is one viewer's.
type row struct {
	who   string
	marks []string
}

// observed is a viewer's document, and what is known of the time around it.
type observed struct {
	*rig.Document
	dropped int   // ListenDrops of the namespace
	files   []int // the server's descriptors before and after
}

// sight is a column: what a document says of one thing. A wrong answer fails
// the test, and so does one that is missing without a word.
type sight struct {
	name string
	see  func(t *testing.T, s *scene, v viewer, d observed) string
}

func sights() []sight {
	return []sight{
		{"queue", seeQueue},
		{"files", seeFiles},
		{"owner", seeOwner},
		{"env", setting(maxConnections, envConnections, "env SERVER_TOMCAT_MAX_CONNECTIONS", "environ of pid")},
		{"./yml", setting(maxThreads, cwdThreads, "application.yml", "working directory of pid")},
		{"/yml", setting(acceptCount, pathAccept, "/etc/limits.yml", "environ of pid")},
		{"JVM", seeJVM},
		{"resets", seeResets},
		{"cause", seeCause},
	}
}

// seeQueue is what everybody must see: the queue and its limit, the packets
// dropped within the snapshot, the connections by phase.
func seeQueue(t *testing.T, s *scene, v viewer, d observed) string {
	t.Helper()
	l := listener(t, d.Document, s.Port)
	require.NotNil(t, l.AcceptQueue, v.name)
	require.Equal(t, pathAccept+1, l.AcceptQueue.Length, v.name)
	require.Equal(t, pathAccept, l.AcceptQueue.Limit, v.name)
	require.True(t, l.AcceptQueue.Full, v.name)
	require.NotNil(t, l.Losses, v.name)
	require.Positive(t, l.Losses.DroppedPackets, v.name)
	require.LessOrEqual(t, l.Losses.DroppedPackets, d.dropped, "%s: dropped around the look", v.name)
	// What is dropped between the first readings of the two counters is nobody's:
	// one SYN comes every 50 ms.
	unattributed := d.NetNS[0].Delta["ListenDrops"] - l.Losses.DroppedPackets
	require.GreaterOrEqual(t, unattributed, 0, v.name)
	require.LessOrEqual(t, unattributed, 2, "%s: unattributed", v.name)
	require.NotNil(t, l.Connections, v.name)
	require.Equal(t, 4, l.Connections.Accepted, v.name)
	require.Equal(t, 2, l.Connections.InService, v.name)
	require.Equal(t, 2, l.Connections.Waiting, v.name)
	return seen
}

func seeFiles(t *testing.T, s *scene, v viewer, d observed) string {
	t.Helper()
	p := listener(t, d.Document, s.Port).Process
	if p == nil || p.OpenFiles == nil {
		return missing(t, v, d, "owner of", "open files of pid")
	}
	// An acceptor that waits in accept(2) has reserved the next descriptor
	// (get_unused_fd_flags): it counts and is not listed yet. And the JVM opens and
	// closes some of its own between the listing and the reading.
	require.InDelta(t, d.files[0], *p.OpenFiles-1, 2, v.name)
	require.NotNil(t, p.OpenFilesLimit, v.name)
	return seen
}

func seeOwner(t *testing.T, s *scene, v viewer, d observed) string {
	t.Helper()
	p := listener(t, d.Document, s.Port).Process
	if p == nil {
		return missing(t, v, d, "owner of")
	}
	require.Equal(t, s.PID, p.PID, v.name)
	for _, u := range d.Unavailable {
		if strings.Contains(u.Why, "known by its threads' names only") {
			return partly
		}
	}
	return seen
}

func maxConnections(c *rig.Connector) *rig.Setting { return c.MaxConnections }
func maxThreads(c *rig.Connector) *rig.Setting     { return c.MaxThreads }
func acceptCount(c *rig.Connector) *rig.Setting    { return c.AcceptCount }

// setting is the column of a limit that stands in one place only. Another
// value, from a place that the right one beats, must be called uncertain.
func setting(of func(*rig.Connector) *rig.Setting, value int, source, without string) func(*testing.T, *scene, viewer, observed) string {
	return func(t *testing.T, s *scene, v viewer, d observed) string {
		t.Helper()
		l := listener(t, d.Document, s.Port)
		if l.Connector == nil || of(l.Connector) == nil {
			return missing(t, v, d, without, "owner of")
		}
		got := *of(l.Connector)
		switch {
		case strings.HasSuffix(got.Source, source):
			require.Equal(t, value, got.Value, "%s: %v", v.name, got)
			if got.Note == "" {
				return seen
			}
			require.Contains(t, got.Note, "uncertain", "%s: %v", v.name, got)
			return partly
		case got.Value != value:
			require.Contains(t, got.Note, "uncertain", "%s: %v", v.name, got)
		}
		return missing(t, v, d, without, "owner of")
	}
}

func seeJVM(t *testing.T, s *scene, v viewer, d observed) string {
	t.Helper()
	p := listener(t, d.Document, s.Port).Process
	if p == nil || p.SafepointSeconds == nil {
		return missing(t, v, d, "JVM counters", "owner of")
	}
	require.Positive(t, *p.SafepointSeconds, v.name)
	return seen
}

func seeResets(t *testing.T, s *scene, v viewer, d observed) string {
	t.Helper()
	c := listener(t, d.Document, s.Port).Connections
	if c.Reset == nil {
		return missing(t, v, d, "descriptors of pid", "owner of")
	}
	require.Equal(t, 6, *c.Reset, v.name)
	return seen
}

func seeCause(t *testing.T, s *scene, v viewer, d observed) string {
	t.Helper()
	l := listener(t, d.Document, s.Port)
	require.Equal(t, "losing", l.Verdict.Status, v.name)
	// On a machine that is busy with other things the threads wait for a CPU, too.
	require.Contains(t, []string{"", "max_connections", "cpu_saturated"}, l.Verdict.Cause, v.name)
	if names(l, "max_connections") {
		return seen
	}
	if l.Verdict.Cause == "" {
		_, told := code(l.Verdict, "limits_unknown")
		require.True(t, told, v.name)
	}
	return unseen
}

// names reports whether a cause is given for the verdict, or for some of the packets.
func names(l *rig.Listener, cause string) bool {
	return l.Verdict.Cause == cause || byCause(l.Losses, cause) > 0
}

// starved reports whether the machine was too busy for a snapshot: the server lacked a
// CPU, which hides the limit behind it, or its configuration was not read in time.
func (s *scene) starved(t *testing.T, d *rig.Document) bool {
	t.Helper()
	l := listener(t, d, s.Port)
	for _, u := range d.Unavailable {
		if strings.Contains(u.Why, "took longer") {
			return true
		}
	}
	return names(l, "cpu_saturated") && !names(l, "max_connections")
}

// missing is a thing that a document names as not to be had, and how it could.
func missing(t *testing.T, v viewer, d observed, names ...string) string {
	t.Helper()
	for _, u := range d.Unavailable {
		for _, name := range names {
			if strings.HasPrefix(u.What, name) {
				require.NotEmpty(t, u.Why, u.What)
				require.NotEmpty(t, u.How, u.What)
				return unseen
			}
		}
	}
	require.FailNow(t, "missing without a word", "%s: none of %q in %v", v.name, names, d.Unavailable)
	return ""
}

// marks are the columns of what a viewer got to see.
func (s *scene) marks(t *testing.T, v viewer, d observed) []string {
	t.Helper()
	var marks []string
	for _, sight := range sights() {
		marks = append(marks, sight.see(t, s, v, d))
	}
	return marks
}

// fromElsewhere is the last column: a snapshot from another network namespace
// sees the same, or says what it needs.
func (s *scene) fromElsewhere(t *testing.T, v viewer, d observed, here []string, out []byte, errs string, code int) string {
	t.Helper()
	if code != 0 {
		require.Equal(t, 1, code, v.name)
		require.Regexp(t, `CAP_SYS_ADMIN|no such process|hidden`, errs, v.name)
		return unseen
	}
	var err error
	d.Document, err = rig.Decode(out)
	require.NoError(t, err)
	require.Equal(t, here, s.marks(t, v, d), v.name)
	return seen
}

const (
	privilegesBegin = "<!-- privileges: generated by UPDATE=1 go test ./internal/test/e2e -run Privilege -->\n"
	privilegesEnd   = "<!-- /privileges -->\n"
)

// privilegeTable is the text between the marks of docs/privileges.md.
func privilegeTable(rows []row) string {
	head := row{who: "tcpdiag runs as"}
	for _, s := range sights() {
		head.marks = append(head.marks, s.name)
	}
	head.marks = append(head.marks, "netns")
	width := utf8.RuneCountInString(head.who)
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r.who))
	}
	var b strings.Builder
	line := func(r row) {
		fmt.Fprintf(&b, "| %-*s |", width, r.who)
		for i, mark := range r.marks {
			fmt.Fprintf(&b, " %-*s |", len(head.marks[i]), mark)
		}
		b.WriteString("\n")
	}
	line(head)
	b.WriteString("|" + strings.Repeat("-", width+2) + "|")
	for _, name := range head.marks {
		b.WriteString(":" + strings.Repeat("-", len(name)) + ":|")
	}
	b.WriteString("\n")
	for _, r := range rows {
		line(r)
	}
	return "\n" + b.String() + "\n" + legend
}

const legend = `✓ seen, – not seen and named as such, ~ seen with a doubt: the owner by its
threads' names, a limit that the unread environment may overrule.
PTRACE is CAP_SYS_PTRACE, DAC is CAP_DAC_READ_SEARCH, ADMIN is CAP_SYS_ADMIN, IDS
are CAP_SETUID and CAP_SETGID (a child process takes the server's own user and
groups before it opens what the server names; without them it opens only what
every user may read); of
a user other than root they are ambient. "its" is the observed server's.

* *queue*: accept queue and its limit, dropped packets, connections by phase.
* *files*: how many files the server has open, and its limit (Linux 6.2 or newer).
* *owner*: which process listens. *env*, *./yml*, */yml*: limits from the
  environment, from a file in the server's working directory, from a readable
  file that the command line names (without PTRACE only in the same mount
  namespace, so not in a container beside it).
* *JVM*: safepoints and collections (hsperfdata; the uid must have a name).
* *resets*: connections that clients reset and Tomcat still holds.
* *cause*: the verdict names the limit that loses packets. For the others it
  says that the limit is not known and has to be given (` + "`--max-connections`" + `).
* *netns*: the same of a server in another network namespace (` + "`--pid`" + `).
`

// requireInPage holds docs/privileges.md to the table, or writes it there.
func requireInPage(t *testing.T, table string) {
	t.Helper()
	root, err := rig.ModuleRoot()
	require.NoError(t, err)
	readme := filepath.Join(root, "docs", "privileges.md")
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), privilegesBegin)
	require.True(t, ok, "docs/privileges.md has no %q", privilegesBegin)
	now, after, ok := strings.Cut(rest, privilegesEnd)
	require.True(t, ok, "docs/privileges.md has no %q", privilegesEnd)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(readme, []byte(before+privilegesBegin+table+privilegesEnd+after), 0o644))
		return
	}
	require.Equal(t, table, now, "docs/privileges.md is stale: UPDATE=1 go test ./internal/test/e2e -run Privilege")
}
