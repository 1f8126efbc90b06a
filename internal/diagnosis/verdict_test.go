package diagnosis

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

func (s scenario) evidence() symptoms.Input {
	e := symptoms.Input{Now: s.now.Listener, Before: s.before.Listener, Sysctl: sysctls(), Delta: model.Counters{}}
	if s.now.Losses != nil {
		e.Interval = time.Second
	}
	if s.before.Listener != nil {
		e.Elapsed = time.Second
		stand(e.Before.AcceptQueue, e.Now.AcceptQueue)
	}
	if s.change != nil {
		s.change(&e)
	}
	return e
}

// stand has a queue stand still whose oldest has aged by the time between the two.
func stand(was, now *model.AcceptQueue) {
	if was != nil && now != nil && was.OldestWait != nil && now.OldestWait != nil && *now.OldestWait-*was.OldestWait == time.Second {
		now.NoAcceptFor = new(time.Second)
	}
}

func TestJudgeScenarios(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			v := Judge(s.evidence(), reading.DefaultThresholds())
			require.Equal(t, s.status.String(), v.Status.String(), v.Summary)
			require.Equal(t, s.cause, v.Cause, v.Summary)
			require.Equal(t, s.chain, v.Chain, v.Summary)
			var codes []string
			for _, f := range v.Findings {
				codes = append(codes, f.Code)
				require.NotEmpty(t, f.Evidence, f.Code)
				require.NotEmpty(t, f.Severity, f.Code)
			}
			for _, code := range s.codes {
				require.Contains(t, codes, code)
			}
			for _, code := range s.notCodes {
				require.NotContains(t, codes, code)
			}
		})
	}
}

// The verdicts as text, so that the wording is reviewed as text.
func TestJudgeGolden(t *testing.T) {
	var b strings.Builder
	for _, s := range scenarios() {
		v := Judge(s.evidence(), reading.DefaultThresholds())
		fmt.Fprintf(&b, "## %s\n%s · %s · %v\n%s\n", s.name, v.Status, v.Cause, v.Chain, v.Summary)
		for _, f := range v.Findings {
			fmt.Fprintf(&b, "- [%s] %s\n  %s\n", f.Severity, f.Code, f.Evidence)
			if f.Advice != "" {
				fmt.Fprintf(&b, "  > %s\n", f.Advice)
			}
		}
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "verdicts.golden")
	golden.Equal(t, path, b.String())
}

// The answers, likewise.
func TestAnswerGolden(t *testing.T) {
	var b strings.Builder
	for _, s := range scenarios() {
		v := Judge(s.evidence(), reading.DefaultThresholds())
		fmt.Fprintf(&b, "## %s\n%s · %s\n%s", s.name, v.Status, v.Cause, answerText(v.Answer))
		b.WriteByte('\n')
	}
	path := filepath.Join("testdata", "answers.golden")
	golden.Equal(t, path, b.String())
}

func answerText(a model.Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "What  %s\nWhy   %s\n", a.What, a.Why)
	for i, s := range a.Do {
		fmt.Fprintf(&b, "Do %d  %s", i+1, s.Text)
		if s.Setting != "" {
			fmt.Fprintf(&b, "\n      %s %s → %s", s.Setting, s.From, s.To)
			if s.File != "" {
				fmt.Fprintf(&b, "  (%s)", s.File)
			}
		}
		if s.Command != "" {
			fmt.Fprintf(&b, "\n      $ %s", s.Command)
		}
		b.WriteByte('\n')
	}
	if a.Not != "" {
		fmt.Fprintf(&b, "Not   %s\n", a.Not)
	}
	return b.String()
}

// requireAnswer holds what every answer has.
func requireAnswer(t *testing.T, v model.Verdict) {
	t.Helper()
	a := v.Answer
	require.NotEmpty(t, a.What)
	require.NotEmpty(t, a.Why)
	require.LessOrEqual(t, len(a.Do), model.MaxSteps)
	if v.Status > model.StatusOK {
		require.NotEmpty(t, a.Do, "%s %s", v.Status, v.Cause)
	}
	texts := []string{a.What, a.Why}
	if a.Not != "" {
		texts = append(texts, a.Not)
	}
	for _, text := range texts {
		require.True(t, strings.HasSuffix(text, "."), text)
		require.NotContains(t, text, "\n")
	}
	for _, text := range append(texts, steps(a)...) {
		for _, bad := range []string{"%!", "..", " .", " ,", " ;", ": .", "  "} {
			require.NotContains(t, text, bad)
		}
	}
	for _, s := range a.Do {
		require.NotEmpty(t, s.Text)
		require.False(t, strings.HasSuffix(s.Text, "."), s.Text)
		if s.Setting != "" {
			require.NotEqual(t, s.From, s.To, "%s: the value in force", s.Setting)
			require.NotRegexp(t, `^[\d,.]+ [a-z]+$`, s.To, "%s: as it is typed", s.Setting)
		}
	}
}

func steps(a model.Answer) (out []string) {
	for _, s := range a.Do {
		out = append(out, s.Text)
	}
	return out
}

// Rules that every text keeps.
func TestJudgeWording(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			v := Judge(s.evidence(), reading.DefaultThresholds())
			require.NotContains(t, v.Summary, "\n")
			require.True(t, strings.HasSuffix(v.Summary, "."), v.Summary)
			require.Equal(t, 1, strings.Count(v.Summary+" ", ". "), "one sentence: %s", v.Summary)
			requireAnswer(t, v)
			texts := []string{v.Summary, v.Answer.What, v.Answer.Why, v.Answer.Not}
			for _, f := range v.Findings {
				texts = append(texts, f.Evidence, f.Advice)
			}
			for _, text := range texts {
				text = strings.NewReplacer("of 1 threads", "", "of 1 connections", "").Replace(text)
				for _, bad := range []string{"%!", "..", " .", " ,", " ;", " 1 packets", " 1 requests", " 1 connections", " 1 threads", "clients were dropped", "clients dropped"} {
					require.NotContains(t, text, bad)
				}
				if v.Status != model.StatusDown {
					require.NotContains(t, text, "are refused", "a full backlog never refuses")
				}
			}
		})
	}
}

// Every cause that a verdict can have is reached by the scenarios.
func TestScenariosReachEveryCause(t *testing.T) {
	var reached []model.Cause
	for _, s := range scenarios() {
		reached = append(reached, s.cause)
	}
	for _, c := range append(model.DropCauses(), model.CauseMaxThreads, model.CauseExecutorQueue,
		model.CauseBacklogClamped, model.CauseListenerClosed, model.CauseNoListener, model.CauseEphemeralPorts,
		model.CauseDownstream, model.CauseConnectionPool) {
		if c != model.CauseAcceptQueue {
			require.True(t, slices.Contains(reached, c), "%q", c)
		}
	}
}

// What comes on top is rejected by a queue that is full, not by one that is
// nearly full.
func TestExecutorSentence(t *testing.T) {
	for name, c := range map[string]struct {
		places, waiting int
		want            string
	}{
		"nearly full":     {100, 96, "All 20 threads are busy and 96 requests wait inside Tomcat for one; the accept queue is empty and nothing is lost yet."},
		"full":            {100, 100, "All 20 threads are busy and 100 requests wait inside Tomcat for one: the executor's queue is full (100 of 100), Tomcat rejects what comes on top."},
		"one place":       {1, 3, "All 20 threads are busy and 3 requests wait inside Tomcat for one: the executor's queue is full (1 of 1), Tomcat rejects what comes on top."},
		"no place":        {0, 0, "All 20 threads are busy: the executor's queue has no place at all, Tomcat rejects what comes on top."},
		"no place, and 1": {0, 1, "All 20 threads are busy and 1 request waits inside Tomcat for one: the executor's queue has no place at all, Tomcat rejects what comes on top."},
	} {
		t.Run(name, func(t *testing.T) {
			l := tomcat(20, 8192, 100).pool(20).inService(20).waiting(c.waiting).do(bounded)
			l.Connector.MaxQueue.Value = c.places
			v := Judge(symptoms.Input{Now: l.Listener, Sysctl: sysctls()}, reading.DefaultThresholds())
			require.Equal(t, c.want, v.Summary)
		})
	}
}

// Whatever a verdict is judged from must be kept, or it cannot be judged again.
func TestBasisHoldsAllEvidence(t *testing.T) {
	basis := reflect.TypeFor[model.Basis]()
	for f := range reflect.TypeFor[symptoms.Input]().Fields() {
		if f.Name == "Now" {
			continue
		}
		kept, ok := basis.FieldByName(f.Name)
		require.True(t, ok, "%s is evidence and not part of model.Basis: Evidence.Basis and Again must hand it on", f.Name)
		require.Equal(t, f.Type, kept.Type, f.Name)
	}
}

func TestAgainIsTheVerdictThatWasShown(t *testing.T) {
	th := reading.DefaultThresholds()
	var h Hysteresis
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var before *model.Listener
	held := 0
	for i, now := range []look{
		tomcat(20, 60, 20).inService(5),
		tomcat(20, 60, 20).inService(20).waiting(40).queue(21, time.Second).lost(model.CauseMaxConnections, model.PacketSYN, 7),
		tomcat(20, 60, 20).inService(20).waiting(40).queue(21, 2*time.Second).lost(model.CauseMaxConnections, model.PacketSYN, 9),
		tomcat(20, 60, 20).inService(20).waiting(40).queue(21, 2*time.Second),
		tomcat(20, 60, 20).inService(5), // too short to be better
		nothing(),
		tomcat(20, 60, 20).inService(5),
	} {
		at = at.Add(time.Second)
		e := symptoms.Input{Now: now.Listener, Before: before, Elapsed: time.Second, Interval: time.Minute, Sysctl: sysctls()}
		now.Basis = e.Basis()
		if i == 2 { // clients are known after what was judged
			clients := &model.Clients{Observed: time.Minute}
			clients.Outcomes[model.ClientGaveUp] = 3
			now.Losses.Clients = clients
		}
		v := Judge(e, th)
		if before != nil {
			now.Basis.Shown = new(h.Shown())
			shown := h.Apply(at, v)
			if !reflect.DeepEqual(shown, v) {
				held++
			}
			v = shown
		}
		if i == 2 {
			v = withClients(at, now.Listener, time.Minute, th)
			require.Contains(t, v.Summary, "3 clients gave up connecting; 9 packets were dropped")
			require.Contains(t, v.Findings[0].Advice, "the 3 clients for which there was none")
		}
		now.Verdict = v
		again, known := Again(at, now.Listener, th)
		require.True(t, known)
		require.Equal(t, v, again, "look %d", i)
		before = now.Listener
	}
	require.Equal(t, 1, held)
	_, known := Again(at, tomcat(1, 1, 1).Listener, th)
	require.False(t, known)
}
