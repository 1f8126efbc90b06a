package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
)

// completionTimeout is how long somebody waits who has pressed the tab key.
const completionTimeout = 2 * time.Second

// completer offers words for the shell.
type completer = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// OutputVar adds --output and its completion.
func OutputVar(cmd *cobra.Command, value *string, usage string, forms ...string) {
	cmd.Flags().StringVarP(value, "output", "o", forms[0], usage)
	Complete(cmd, "output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// Complete has words for a flag. It fails for a flag that there is none of, or twice.
func Complete(cmd *cobra.Command, flag string, words completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, words); err != nil {
		panic(err)
	}
}

// CompleteTargets offers the ports and the processes that listen here.
func CompleteTargets(cmd *cobra.Command) {
	CompleteFlags(cmd)
	cmd.ValidArgsFunction = Listening(PortOf)
}

// CompleteFlags has words for the flags that several commands have.
func CompleteFlags(cmd *cobra.Command) {
	Complete(cmd, "port", Listening(PortOf))
	Complete(cmd, "pid", Listening(pidOf))
}

// choices are the words that some flags take, whichever command has them.
func choices() map[string][]cobra.Completion {
	return map[string][]cobra.Completion{
		"handshakes": {"auto", "on", "off"}, "fail-on": {"warning", "saturated", "losing", "down"},
		"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"},
	}
}

// files are the flags that take a file; folders those that take a folder.
func files() []string {
	return []string{"config", "web.config.file", "http.config.file", "report", "json", "junit", "markdown", "baseline", "output"}
}

func folders() []string { return []string{"incident-dir", "kubelet-logs"} }

// CompleteAll has words for the flags of a command and of those below it that have none of their own:
// files are offered for no number, time or address.
func CompleteAll(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, completes := cmd.GetFlagCompletionFunc(f.Name); completes || f.Value.Type() == "bool" {
			return
		}
		switch words, ok := choices()[f.Name]; {
		case ok:
			Complete(cmd, f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		case slices.Contains(folders(), f.Name):
			Complete(cmd, f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
		case !slices.Contains(files(), f.Name):
			Complete(cmd, f.Name, cobra.NoFileCompletions)
		}
	})
	for _, below := range cmd.Commands() {
		CompleteAll(below)
	}
}

// PortOf is the port of a listener as text.
func PortOf(l *model.Listener) string { return strconv.Itoa(int(l.Port)) }

func pidOf(l *model.Listener) string {
	if l.Process == nil {
		return ""
	}
	return strconv.Itoa(l.Process.PID)
}

// Listening offers what word says of each listener here, with its process.
func Listening(word func(*model.Listener) string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		var out []cobra.Completion
		for _, l := range listeners(ctx) {
			if w := word(&l); w != "" && !slices.ContainsFunc(out, func(c cobra.Completion) bool { return c == w || strings.HasPrefix(c, w+"\t") }) {
				out = append(out, cobra.CompletionWithDesc(w, processOf(&l)))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func processOf(l *model.Listener) string {
	if l.Process == nil {
		return l.ID.String()
	}
	return fmt.Sprintf("%s %d", model.Printable(l.Process.Comm), l.Process.PID)
}

// listeners are all of this network namespace; none where they cannot be read.
func listeners(ctx context.Context) []model.Listener {
	opt := schedule.Defaults()
	opt.All = true
	s, err := NewScheduler(opt)
	if err != nil {
		return nil
	}
	left, err := Interruptible(ctx, func(ctx context.Context) error { return s.Observe(ctx, 0) })
	if !left {
		defer s.Close()
	}
	if err != nil {
		return nil
	}
	return s.Snapshot().Listeners
}

// CompleteIncidents offers the recordings of --incident-dir, the latest first, and files.
func CompleteIncidents(cmd *cobra.Command) {
	Complete(cmd, "incident-dir", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return recordings(cmd.Flag("incident-dir").Value.String()), cobra.ShellCompDirectiveKeepOrder
	}
}

// recordings are the IDs of the recordings in a directory, the latest first.
func recordings(dir string) (ids []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".tcpdiag"); ok && incident.IsID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // they begin with a number that counts up
	slices.Reverse(ids)
	return ids
}

// ErrInterrupted is what a signal leaves of a command that had an answer to give.
var ErrInterrupted = errors.New("interrupted")

// ErrNoSnapshot is a machine that could not be read in time.
var ErrNoSnapshot = errors.New("no snapshot within 15 s")

// Grace is how long a scan that was cancelled may take to end. What hangs in
// somebody's file system or socket ends with this process.
const Grace = 500 * time.Millisecond

// Interruptible runs what reads the machine until ctx is done, and does not
// wait for it much longer: left says that it still runs, and that what it uses
// must stay open.
func Interruptible(ctx context.Context, run func(context.Context) error) (left bool, err error) {
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(Grace):
			return true, ErrInterrupted
		}
	}
	if err != nil && ctx.Err() != nil {
		return false, ErrInterrupted
	}
	return false, err
}
