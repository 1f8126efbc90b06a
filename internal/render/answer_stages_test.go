package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// A list of what it may be is left out whole where there is no room for it.
func TestNotesAreCutByClauses(t *testing.T) {
	s := AnswerText{Screen: &term.Screen{Width: 40}}
	for want, text := range map[string]string{
		"  4 wait": "  4 wait: lock, pool, timer", "  16 wait": "  16 wait for a thread that is free", "  not known": "  not known; give --max-connections", "": "  10.0.3.7:5432-and-a-long-name",
	} {
		got := ""
		for _, sp := range s.whole([]term.Span{term.Text(strings.Repeat("x", 28))}, term.Text(text)) {
			got += sp.Text
		}
		require.Equal(t, want, got)
	}
}

// More of a stage than there is of it reads as a mistake: the limit is then another, or was lowered.
func TestNoStageHasMoreThanItsLimit(t *testing.T) {
	l := model.Listener{
		Process:     &model.Process{OpenFiles: new(21), OpenFilesLimit: new(20)},
		Connector:   &model.Connector{MaxThreads: &model.Setting[int]{Value: 4, Kind: model.SourceFlag}},
		Connections: &model.Connections{Accepted: 9, Phases: [model.NumPhases]int{model.InService: 9}},
	}
	require.Equal(t, "20/20", Fraction(openFiles(&l)))
	require.Equal(t, "n/a", Fraction(Threads(&l)))
	require.Equal(t, "not known: more requests than threads", Threads(&l).why)
	l.Verdict.Chain = []model.Cause{model.CauseMaxThreads}
	require.Equal(t, "4/4", Fraction(Threads(&l)))
}

// A step that explains itself behind a colon has no second one before what is to be copied, and a
// command is in one piece.
func TestStepsHaveOneColon(t *testing.T) {
	for want, step := range map[string]model.Step{
		" Do  1  Read its log:\n          jcmd 42 VM.log\n":                {Text: "Read its log", Command: "jcmd 42 VM.log"},
		" Do  1  Look: it may be another\n          ss -ltn\n":             {Text: "Look: it may be another", Command: "ss -ltn"},
		" Do  1  Raise it: maxThreads 4 → 20\n":                            {Text: "Raise it", Setting: "maxThreads", From: "4", To: "20"},
		" Do  1  Raise it, and restart: once\n          backlog 5 → 100\n": {Text: "Raise it, and restart: once", Setting: "backlog", From: "5", To: "100"},
	} {
		s := AnswerText{Screen: term.New(80, false)}
		s.step(0, &step, whole)
		require.Equal(t, want, s.String())
	}
	s := SnapshotText{term.New(80, false), &model.Snapshot{Notes: []string{"java 15095 listens on 8080 in another network namespace: sudo tcpdiag snapshot --pid 15095"}}}
	s.Notes()
	require.Contains(t, s.String(), "\n  sudo tcpdiag snapshot --pid 15095\n")
}

// No string of the document has a control in it, neither as it is written nor
// once it is decoded, and every other one is as it was.
func TestJSONPrintable(t *testing.T) {
	notes := []string{"a\x1b[2J", "del\x7f", "c1\u009b31m", "bidi\u202e", "line\nend", "tab\t", `back\slash "quoted"`, "größe → <b>", "nul\x00"}
	var out bytes.Buffer
	require.NoError(t, JSON(&out, &model.Snapshot{Notes: notes}))
	require.False(t, strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), func(r rune) bool { return !unicode.IsPrint(r) }))
	var got struct{ Notes []string }
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, []string{
		`a\u001b[2J`, `del\u007f`, `c1\u009b31m`, `bidi\u202e`, `line\nend`, `tab\t`, `back\slash "quoted"`, "größe → <b>", `nul\u0000`,
	}, got.Notes)
}

// Of a process that is too long the number is left, which commands take; of other words the beginning.
func TestNamesAreCutBeforeTheirNumber(t *testing.T) {
	for want, text := range map[string]string{"demo-… 24001": "demo-server 24001", "owner not v…": "owner not visible", "java 42": "java 42", "7-… 123456789": "7-eleven 123456789"} {
		require.Equal(t, want, cutName(text, len([]rune(want))), text)
	}
}
