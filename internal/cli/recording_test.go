package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/incident"
)

// testdata/incident.tcpdiag was recorded from tcpdiag demo by an agent that was
// killed; it must stay readable.
const recorded = "testdata/incident.tcpdiag"

// ofYesterday is a copy that nobody writes any more: what a checkout has just made might still be written.
func ofYesterday(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(recorded)
	require.NoError(t, err)
	path, day := filepath.Join(t.TempDir(), filepath.Base(recorded)), time.Now().AddDate(0, 0, -1)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.NoError(t, os.Chtimes(path, day, day))
	return path
}

func TestReportOfARecording(t *testing.T) {
	recorded := ofYesterday(t)
	var out bytes.Buffer
	require.Equal(t, command.ExitOK, Main(context.Background(), []string{"report", recorded}, &out, &out), out.String())
	for _, want := range []string{" What 73 packets of clients were dropped at 127.0.0.1:43949 on demo-1: 2026-11-22 05:26:17 UTC, for 8.8 s, until the agent was killed. Why 1 client", " Do 1 Threads first", "What happened", "became losing", "max_connections", "What clients saw", "Connect timeouts", "Settings in force", "Raising maxConnections", "the agent was killed"} {
		require.Contains(t, strings.Join(strings.Fields(out.String()), " "), want)
	}
	page := filepath.Join(t.TempDir(), "incident.html")
	require.Equal(t, command.ExitOK, Main(context.Background(), []string{"report", recorded, "-o", page}, &out, &out), out.String())
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, want := range []string{"What happened", "What clients saw", "What was found", "How it went", "<svg"} {
		require.Contains(t, string(html), want)
	}
	require.NotContains(t, string(html), "<script")
	require.NotContains(t, string(html), "<link")
	require.NotRegexp(t, `(src|href)="(https?:)?//`, string(html), "opens without a network")
}

// The recording is older than this program: its words may have changed since,
// what it was judged to be may not. That a verdict judged again by the program
// which recorded it is the same in every byte is tested with the recorder.
func TestReplayOfARecording(t *testing.T) {
	var out, stderr bytes.Buffer
	Main(context.Background(), []string{"replay", recorded}, &out, &stderr)
	require.Equal(t, 11, strings.Count(out.String(), "losing     max_connections"), out.String())
	require.Regexp(t, `all 11 verdicts are the recorded ones|\d+ of 11 verdicts are not the recorded ones`, stderr.String())
	out.Reset()
	Main(context.Background(), []string{"replay", recorded, "-o", "json"}, &out, &stderr)
	require.Contains(t, out.String(), `"schema":"tcpdiag.snapshot/v1"`)
}

func TestRecordingsThatCannotBeRead(t *testing.T) {
	text, err := os.ReadFile(recorded)
	require.NoError(t, err)
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	pipe, sparse := filepath.Join(dir, "pipe"), file("sparse", nil)
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Truncate(sparse, 10e9))
	tail := file("tail", text)
	require.NoError(t, os.Truncate(tail, 10e9))
	damaged := bytes.Replace(text, []byte(`{"key"`), []byte(`{"kex"`), 1)
	for name, test := range map[string]struct{ path, want string }{
		"pipe":      {pipe, "is not a file"},
		"device":    {"/dev/zero", "is not a file"},
		"sparse":    {sparse, "not a recording of tcpdiag"},
		"tail":      {tail, "larger than a recording of tcpdiag can be"},
		"bomb":      {file("d", compressed(t, 64<<20)), "not a recording of tcpdiag"},
		"version":   {file("e", resigned(t, text, "recording/v1", "recording/v3")), "recorded by a later version of tcpdiag (unknown): it is of format 3, this program reads formats up to 2"},
		"damaged":   {file("f", damaged), "records that could not be read: 11"},
		"foreign":   {file("a", []byte("hello\n")), "not a recording of tcpdiag"},
		"empty":     {file("b", nil), "not a recording of tcpdiag"},
		"absent":    {filepath.Join(dir, "none"), "no such file"},
		"directory": {dir, "is not a file"},
		"headless":  {file("c", text[200:]), "not a recording of tcpdiag"},
		"id":        {"000009-20260102T030405Z-8080", "no such file"},
	} {
		for _, sub := range []string{"report", "replay"} {
			var stderr bytes.Buffer
			require.Equal(t, command.ExitFailure, Main(context.Background(), []string{sub, test.path, "--incident-dir", dir}, &stderr, &stderr), name)
			require.Contains(t, stderr.String(), test.want, name)
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), "one line: %s", stderr.String())
		}
	}
	var out, stderr bytes.Buffer
	torn := file("000001-20260102T030405Z-8080.tcpdiag", text[:len(text)-100])
	require.Equal(t, command.ExitOK, Main(context.Background(), []string{"report", "000001-20260102T030405Z-8080", "--incident-dir", filepath.Dir(torn)}, &out, &stderr), stderr.String())
	require.Contains(t, out.String(), "not written to its end")
}

// After an upgrade the recordings of each format before are listed, reported and judged again, in the directory in which the
// agent before has left them.
func TestRecordingsOfEachFormatAfterAnUpgrade(t *testing.T) {
	files, err := filepath.Glob("../incident/recording/testdata/*.tcpdiag")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	dir, day := t.TempDir(), time.Now().AddDate(0, 0, -1)
	var ids []string
	for i, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		id := fmt.Sprintf("%06d-20260102T030405Z-8080", i+1)
		path := filepath.Join(dir, id+".tcpdiag")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		require.NoError(t, os.Chtimes(path, day, day))
		ids = append(ids, id)
	}
	library, err := incident.OpenLibrary(dir)
	require.NoError(t, err)
	defer library.Close()
	list, err := library.List()
	require.NoError(t, err)
	require.Len(t, list, len(ids))
	for i, id := range ids {
		for _, args := range [][]string{{"report", id}, {"replay", id}, {"replay", id, "-o", "json"}} {
			var out, stderr bytes.Buffer
			code := Main(t.Context(), append(args, "--incident-dir", dir), &out, &stderr)
			if args[0] == "report" { // a verdict may have other words by now, which replay says
				require.Equal(t, command.ExitOK, code, "%s %v: %s", files[i], args, stderr.String())
			}
			require.NotContains(t, stderr.String(), "could not be read", files[i])
			require.NotContains(t, stderr.String(), "later version", files[i])
			if args[0] == "replay" {
				require.Contains(t, out.String(), "not_accepting", "%s %v", files[i], args)
			}
		}
	}
}

func TestReplayTellsAnotherVerdict(t *testing.T) {
	text, err := os.ReadFile(recorded)
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "changed")
	require.NoError(t, os.WriteFile(changed, resigned(t, text, `"Limit":5,`, `"Limit":50,`), 0o600))
	var out, stderr bytes.Buffer
	require.Equal(t, command.ExitFailure, Main(context.Background(), []string{"replay", changed}, &out, &stderr))
	require.Regexp(t, `replay: .*changed: \d+ of \d+ verdicts are not the recorded ones`, stderr.String())
}

func TestReplayScreenGoesBackAndForth(t *testing.T) {
	var stderr bytes.Buffer
	in, err := command.OpenRecording(recorded, "", &stderr)
	require.NoError(t, err)
	defer in.Close()
	moments := momentsOf(t, in)
	require.Greater(t, len(moments), 3)
	m := newReplayScreen(moments, 1, command.TextOptionsOf(&stderr))
	m.text.Width, m.height = 100, 40
	m.seek(0)
	first := m.View().Content
	require.Contains(t, first, "replay 1 of")
	m.press("end")
	require.Equal(t, len(moments)-1, m.at)
	m.press("left")
	require.Equal(t, len(moments)-2, m.at)
	m.press("space")
	require.True(t, m.paused)
	require.Nil(t, m.press("pgup"), "a held screen waits for nothing")
	m.press("home")
	require.Zero(t, m.at)
	m.press("+")
	require.InDelta(t, 2, m.speed, 1e-9)
	m.press("space")
	_, wait := m.Update(turnMsg(m.turn))
	require.Equal(t, 1, m.at)
	require.NotNil(t, wait)
	_, wait = m.Update(turnMsg(m.turn - 1))
	require.Nil(t, wait, "a tick from before a key is void")
}
