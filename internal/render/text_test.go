package render_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

func text(t *testing.T, s *model.Snapshot, o render.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, render.Text(&b, s, o))
	return b.String()
}

func TestTextFitsItsWidth(t *testing.T) {
	for name, s := range scenarios() {
		for width := 40; width <= 120; width += 8 {
			for _, color := range []bool{false, true} {
				for line := range strings.Lines(text(t, s, render.TextOptions{Width: width, Color: color, Verbose: width%16 == 0})) {
					if strings.Contains(line, "tcpdiag snapshot --port") {
						continue // a command is one piece, to be copied
					}
					if lipgloss.Width(line) > width || strings.HasSuffix(line, " \n") {
						t.Errorf("%s at %d: too wide or blanks at the end: %q", name, width, line)
					}
				}
			}
		}
	}
}

// An answer and the next prompt are on the screen together, whatever the answer is.
func TestAnswerFitsTheScreen(t *testing.T) {
	for name, s := range scenarios() {
		for _, color := range []bool{false, true} {
			got := text(t, s, render.TextOptions{Width: 80, Color: color})
			require.LessOrEqual(t, strings.Count(got, "\n"), 23, "%s:\n%s", name, got)
		}
	}
	require.LessOrEqual(t, strings.Count(text(t, okIdle(), render.TextOptions{}), "\n"), 10)
}

// The steps are never what is left out, nor the stages that matter.
func TestAnswerKeepsTheStepsOnALowScreen(t *testing.T) {
	got := text(t, overload(), render.TextOptions{Width: 80, Height: 15})
	for _, want := range []string{"What ", "Why ", "Do  1 ", "     2 ", "     3 ", "Not ", "200 → 400", "◀ drops here", "◀ fix this first"} {
		require.Contains(t, got, want)
	}
	require.NotContains(t, got, "open files", "calm")
}

// Where sudo helps it is said in one line; root lacks a capability instead.
func TestAnswerSaysWhatCouldNotBeRead(t *testing.T) {
	require.Contains(t, text(t, nobody(), render.TextOptions{}), "\n sudo tcpdiag snapshot --port 8080 (3 readings denied: -v)\n")
	require.Contains(t, text(t, nobody(), render.TextOptions{Root: true}), "\n This root lacks CAP_SYS_PTRACE (3 readings denied: -v)\n")
	s := okIdle()
	s.Unavailable = []model.Unavailable{{What: "phases", Why: "encrypted", How: "ask Actuator"}}
	require.Contains(t, text(t, s, render.TextOptions{}), "\n 1 reading not possible: -v\n")
}

func TestTextWidthIsKeptInBounds(t *testing.T) {
	s := overload()
	require.Equal(t, text(t, s, render.TextOptions{Width: 80}), text(t, s, render.TextOptions{}), "80 is the default")
	require.Equal(t, text(t, s, render.TextOptions{Width: 120}), text(t, s, render.TextOptions{Width: 400}))
	require.Equal(t, text(t, s, render.TextOptions{Width: 40}), text(t, s, render.TextOptions{Width: 3}))
}

func TestTextWithoutColourHasNoEscapes(t *testing.T) {
	for name, s := range scenarios() {
		require.NotContains(t, text(t, s, render.TextOptions{}), "\x1b", name)
	}
}

func TestTextSaysTheSameInColour(t *testing.T) {
	escapes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	// The badge's own blanks are the one difference.
	words := func(s string) []string { return strings.Fields(escapes.ReplaceAllString(s, "")) }
	for name, s := range scenarios() {
		require.Equal(t, words(text(t, s, render.TextOptions{Width: 120})), words(text(t, s, render.TextOptions{Width: 120, Color: true})), name)
	}
}

// A process may call itself anything, and settings come from files that others write.
func TestTextIsNotMovedByForeignText(t *testing.T) {
	const evil = "x\x1b[2J\x1b]0;pwned\a\r\u202e\xff"
	s := nobody()
	s.Host, s.Kernel, s.Notes = evil, evil, []string{evil}
	s.Unavailable = append(s.Unavailable, model.Unavailable{What: evil, Why: evil, How: evil})
	l := &s.Listeners[0]
	l.Process.Comm, l.Process.Container = evil, evil
	l.Connector.Version, l.Connector.FrameworkVersion, l.Connector.Protocol, l.Connector.Executor = evil, evil, evil, evil
	l.Connector.MaxConnections.Source, l.Connector.MaxConnections.Note = evil, evil
	l.Connector.MinSpareThreads.Note = evil
	l.Limits[0].Name = evil
	l.Verdict.Summary, l.Verdict.Cause, l.Verdict.Chain[0] = evil, evil, evil
	l.Verdict.Findings[0] = model.Finding{Code: evil, Evidence: evil, Advice: evil, Severity: evil}
	l.Losses.WorstCase[0], l.Losses.By[0].Cause = evil, evil
	for i := range 5 {
		quiet := tomcat("[::]:9000")
		quiet.ID.NetNS, quiet.Process.Comm = uint64(i), evil
		s.Listeners = append(s.Listeners, quiet)
	}
	answer := &l.Verdict.Answer
	answer.What, answer.Why, answer.Not = evil, evil, evil
	answer.Do = []model.Step{{Text: evil, Command: evil, Setting: evil, File: evil, From: evil, To: evil, Effect: evil}}
	for _, width := range []int{80, 120, -80} {
		got := text(t, s, render.TextOptions{Width: max(width, -width), Verbose: width < 0})
		require.False(t, strings.ContainsAny(got, "\x1b\a\r\u202e"), "%q", got)
		require.True(t, utf8.ValidString(got))
	}
}

func TestTextShowsTheWorstFirst(t *testing.T) {
	got := text(t, machine(8), render.TextOptions{Verbose: true})
	losing, saturated, ok := strings.Index(got, "LOSING"), strings.Index(got, "SATURATED"), strings.Index(got, ":10000")
	require.Positive(t, losing)
	require.Less(t, losing, saturated)
	require.Less(t, saturated, ok)
}

func TestTextPutsNotesBeforeListeners(t *testing.T) {
	got := text(t, unknownLimits(), render.TextOptions{})
	note := strings.Index(got, "no Tomcat found")
	require.Positive(t, note)
	require.Less(t, note, strings.Index(got, ":5432"))
}

// With --all on a big machine the quiet ones get a line each, and what is in
// trouble stays on the first screen.
func TestTextIsCompactWithManyListeners(t *testing.T) {
	lines := strings.Split(text(t, machine(500), render.TextOptions{}), "\n")
	require.LessOrEqual(t, len(lines), 24)
	require.Contains(t, lines[0], "502 listeners: 1 losing · 1 saturated · 500 ok")
	require.Contains(t, lines[2], "losing")
	require.Contains(t, lines[4], "500 more ok: tcpdiag -v lists them")

	lines = strings.Split(text(t, machine(500), render.TextOptions{Verbose: true}), "\n")
	require.Less(t, len(lines), 500+90)
	require.Contains(t, lines[3], "LOSING")
}

func TestTextGivesDetailsToSoMany(t *testing.T) {
	s := snapshotOf()
	for i := range 100 {
		l := overload().Listeners[0]
		l.ID.NetNS = uint64(i)
		s.Listeners = append(s.Listeners, l)
	}
	got := text(t, s, render.TextOptions{Verbose: true})
	require.Equal(t, 20, strings.Count(got, "LOSING CLIENTS"))
	require.Equal(t, 80, strings.Count(got, "\nlosing "))
}

func TestTextNeverCallsPacketsClients(t *testing.T) {
	got := text(t, overload(), render.TextOptions{Width: 120, Verbose: true})
	require.Contains(t, got, "1,700 packets dropped: max_connections (1,688 SYN, ~12 ACK)")
	require.NotRegexp(t, `clients? (dropped|lost)`, got)
}

// sampled has thousands of connections, of which a random part was asked.
func sampled() *model.Snapshot {
	s := okIdle()
	c := s.Listeners[0].Connections
	c.Accepted, c.Phases = 10_007, [model.NumPhases]int{model.InService: 31, model.Idle: 9976}
	c.Subset, c.Error = 4096, 55
	return s
}

func TestJSONOfAnEstimate(t *testing.T) {
	of := func(s *model.Snapshot) map[string]any {
		l := document(t, s)["listeners"].([]any)[0]
		return l.(map[string]any)["connections"].(map[string]any)
	}
	c := of(sampled())
	require.InDelta(t, 4096, c["sampled"], 0)
	require.InDelta(t, 55, c["sampling_error"], 0)
	require.NotContains(t, of(okIdle()), "sampled")
	require.NotContains(t, of(okIdle()), "sampling_error")
}

func TestTextSaysWhatIsNotKnown(t *testing.T) {
	tests := map[string]struct {
		s    *model.Snapshot
		want string
	}{
		"limits":      {unknownLimits(), `connections +n/a / n/a +\(not known; give --max-connections\)`},
		"threads":     {nobody(), `threads +200 / n/a +\(not known; give --max-threads\)`},
		"owner":       {unknownLimits(), `open files +n/a / n/a +\(owner not visible\)`},
		"tls":         {tls(), `threads +n/a / 200 +\(not visible: encrypted`},
		"losses":      {singleLook(), `lost +n/a \(one snapshot only`},
		"reasons":     {nobody(), `environ of pid 4242, socket descriptors of pid 4242: permission denied\n +→ run as uid 1000 and gid 1000`},
		"estimates":   {sampled(), `9,976 idle \(each ±55: 4,096 were asked\)`},
		"syn backlog": {unknownLimits(), `SYN backlog +n/a / n/a +\(not scanned\)`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Regexp(t, tt.want, text(t, tt.s, render.TextOptions{Verbose: true}))
		})
	}
}

// 100 % and FULL are said of a full stage only, however near it is.
func TestTextRoundsDown(t *testing.T) {
	s := okIdle()
	s.Listeners[0].Connections.Accepted, s.Listeners[0].Connections.Reset = 8191, nil
	require.Regexp(t, `connections +8,191 / 8,192 +▇+· +99 %`, text(t, s, render.TextOptions{Verbose: true}))
	s.Listeners[0].Connections.Accepted = 1
	require.Regexp(t, `connections +1 / 8,192 +▎·+ +<1 %`, text(t, s, render.TextOptions{Verbose: true}))
	s.Listeners[0].Connections.Reset = new(8191)
	require.Regexp(t, `connections +8,192 / 8,192 +▇+ +FULL`, text(t, s, render.TextOptions{Verbose: true}))
}

// Whether the SYN backlog is full is said by counters, never by its length.
func TestTextNeverCallsTheSynBacklogFull(t *testing.T) {
	s := okIdle()
	s.Listeners[0].SynBacklog = &model.SynBacklog{Length: 100, Limit: 100}
	require.Regexp(t, `SYN backlog +100 / 100 +▇+ +100 %`, text(t, s, render.TextOptions{Verbose: true}))
}

func TestTextGroupsWhatIsMissingByReason(t *testing.T) {
	s := okIdle()
	for range 300 {
		s.Unavailable = append(s.Unavailable, model.Unavailable{What: "owner of a port", Why: "hidden", How: "be root"})
	}
	got := text(t, s, render.TextOptions{Width: 120, Verbose: true})
	require.Contains(t, got, "and 296 more: hidden")
	require.Equal(t, 1, strings.Count(got, "be root"))
}

func TestTextWritesTimesLikePeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		300 * time.Microsecond:      "waited 300 µs",
		40 * time.Millisecond:       "waited 40 ms",
		4249 * time.Millisecond:     "waited 4.2 s",
		12 * time.Second:            "waited 12 s",
		125 * time.Second:           "waited 2 min 5 s",
		180 * time.Second:           "waited 3 min",
		2*time.Hour + 3*time.Minute: "waited 2 h 3 min",
	} {
		s := okIdle()
		s.Listeners[0].AcceptQueue.OldestWait = &d
		require.Contains(t, text(t, s, render.TextOptions{Verbose: true}), want+"\n")
	}
}

func TestTextReportsAFailedWrite(t *testing.T) {
	want := errors.New("no space left")
	require.ErrorIs(t, render.Text(failing{want}, okIdle(), render.TextOptions{}), want)
	require.ErrorIs(t, render.JSON(failing{want}, okIdle()), want)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

var _ io.Writer = failing{}

// The first line is one: the kernel is left out where there is no room for it.
func TestHeaderIsOneLine(t *testing.T) {
	for kernel, fits := range map[string]bool{"6.18.0": true, "6.18.44-of-a-vendor-12345": false} {
		snap := snapshotOf(tomcat("0.0.0.0:8080"))
		snap.Kernel = kernel
		header := func(width int) string {
			line, _, _ := strings.Cut(text(t, snap, render.TextOptions{Width: width, Verbose: true}), "\n")
			return line
		}
		require.Equal(t, fits, strings.Contains(header(80), "Linux "+kernel))
		require.Contains(t, header(80), "watched for 1 s")
		require.Contains(t, header(120), "Linux "+kernel)
	}
}

// A step's command is to be copied: it is in one piece.
func TestCommandOfARunIsInOnePiece(t *testing.T) {
	const command = `sudo -u "$(ps -o user= -p 4711)" tcpdiag snapshot --pid 4711 --thread-dump`
	r := &api.Run{Command: "k6", Listeners: []api.RunListener{{Port: 8080, Status: "losing", Verdict: api.Verdict{Answer: &api.Answer{Do: []api.Step{
		{Text: "See what the 4 threads wait for", Command: command},
		{Text: "Raise the number of threads", Setting: "maxThreads", From: "4", To: "20"},
	}}}}}}
	var b bytes.Buffer
	require.NoError(t, runreport.Text(&b, r, nil, render.TextOptions{Width: 80}))
	require.Contains(t, b.String(), "1 See what the 4 threads wait for:\n      "+command+"\n")
	require.Contains(t, b.String(), "2 Raise the number of threads: maxThreads 4 → 20\n")
}

func TestRunbook(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, render.Runbook(&b, &causes.Runbook{
		Code: "max_threads", Title: "all threads are busy", Seen: "Requests [wait](a.md) in `Tomcat`.", Vain: "acceptCount.",
	}, render.TextOptions{}))
	require.Equal(t, "max_threads: all threads are busy\n\n Seen: Requests wait in Tomcat.\n\n Does not help: acceptCount.\n", b.String())
}

// Every runbook fits on a screen with the next prompt, and the list names each.
func TestRunbooks(t *testing.T) {
	all := diagnosis.Runbooks()
	var list bytes.Buffer
	require.NoError(t, render.Runbooks(&list, all, render.TextOptions{}))
	for i := range all {
		var b bytes.Buffer
		require.NoError(t, render.Runbook(&b, &all[i], render.TextOptions{}))
		require.Contains(t, "\n"+list.String(), "\n "+all[i].Code+" ", all[i].Code)
		require.NotContains(t, b.String(), "`", all[i].Code)
		require.LessOrEqual(t, strings.Count(b.String(), "\n"), 23, all[i].Code)
		for line := range strings.Lines(b.String()) {
			require.LessOrEqual(t, len([]rune(line)), 81, line)
		}
	}
}
