// Package runcmd is tcpdiag run: a load test's command, the observation of the servers of this
// machine meanwhile (run_observe.go), and the answer for the whole run.
package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/loadreport"
	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/passthrough"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

// runOptions are the flags of run.
type runOptions struct {
	command.Targets
	failOn   string
	slo      time.Duration
	settle   time.Duration
	quiet    bool
	json     string
	junit    string
	markdown string
	baseline string
	report   string
	repeat   int
}

// New is the command.
func New() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run a load test, and say what became of its clients and why",
		Long: `run starts COMMAND, observes the servers of this machine while it runs, and ends
with the answer for the whole run: how many clients were offered, served and
turned away and how, which limit was reached first, when and at which rate, the
highest rate at which nobody was turned away, and the smallest settings that
would have served this load.

COMMAND keeps its input, output, terminal and signals; the answer is written to
standard error when it has ended and its last clients are settled (Ctrl-C or
SIGTERM then: at once). Its exit code is the command's own (128+n for
signal n). Only where that is 0 and --fail-on is met it is 10 (warning), 11
(saturated), 12 (losing) or 13 (down). 125: tcpdiag itself failed, COMMAND ran
all the same if it could be started; 126: it could not be started; 127: there is
no such command.`,
		Example: `  tcpdiag run --port 8080 -- k6 run load.js
  tcpdiag run --port 8080 --fail-on losing --junit tcpdiag.xml -- k6 run load.js
  tcpdiag run --slo 500ms -- hey -z 30s -c 200 http://127.0.0.1:8080/
  tcpdiag run --port 8080 --slo 2s --report load.html -- k6 run load.js
  tcpdiag run --json now.json --baseline before.json -- wrk -d 30s http://127.0.0.1:8080/
  tcpdiag run --pid 4711 -- locust --headless -f users.py    # a server in a container here`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.ErrOrStderr(), args)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &command.RunError{Code: ExitFailed, Err: command.Usagef("%v", command.FlagError(cmd, err))}
	})
	cmd.Flags().SetInterspersed(false) // what follows COMMAND is its own
	o.Register(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&o.failOn, "fail-on", "", "exit with 10 to 13 if a listener was as bad, or worse: warning, saturated, losing or down")
	flags.DurationVar(&o.slo, "slo", 0, "how long a client may wait for its answer, such as 500ms: the smallest settings that serve this load are simulated with it")
	flags.DurationVar(&o.settle, "settle", 5*time.Second, "wait after COMMAND for the clients of which it is not known yet how they end, at most this long")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "no lines while COMMAND runs")
	flags.StringVar(&o.json, "json", "", "write the result as JSON to this file")
	flags.StringVar(&o.junit, "junit", "", "write the result as JUnit XML to this file: a test case for each listener")
	flags.StringVar(&o.markdown, "markdown", "", "write the result as Markdown to this file, for a job summary")
	flags.StringVar(&o.report, "report", "", "write the result as a self-contained page to this file: the course of the run, with COMMAND and its arguments")
	flags.IntVar(&o.repeat, "repeat", 1, "run COMMAND this many times: the worst run is shown, with how much they vary among themselves")
	flags.StringVar(&o.baseline, "baseline", "", "compare with the result that an earlier run wrote by --json")
	command.CompleteFlags(cmd)
	return cmd
}

// ExitFailed says that tcpdiag could not observe, or was called wrongly.
const ExitFailed = 125

func (o *runOptions) validate(args []string) error {
	switch {
	case len(args) == 0:
		return command.Usagef("the command of the load test is missing; give it after --, for example: tcpdiag run -- k6 run load.js")
	case o.failOn != "" && failOnStatus(o.failOn) == model.StatusOK:
		return command.Usagef("--fail-on %q: give warning, saturated, losing or down", o.failOn)
	case o.slo < 0 || o.settle < 0 || o.settle > time.Minute:
		return command.Usagef("--slo and --settle take a time from 0, --settle up to 1m")
	}
	if o.repeat < 1 || o.repeat > maxRepeats {
		return command.Usagef("--repeat takes 1 to %d", maxRepeats)
	}
	return o.Validate()
}

// maxRepeats bounds how often a test is run.
const maxRepeats = 100

// failOnStatus is StatusOK for a word that is none of the statuses one can fail on.
func failOnStatus(word string) model.Status {
	for s := model.StatusWarning; s < model.NumStatuses; s++ {
		if s.String() == word {
			return s
		}
	}
	return model.StatusOK
}

func (o *runOptions) run(ctx context.Context, log io.Writer, args []string) error {
	if err := errors.Join(o.validate(args), o.apart()); err != nil {
		return &command.RunError{Code: ExitFailed, Err: err}
	}
	for _, err := range o.unwritable() { // it can still be stopped, before its result is lost
		fmt.Fprintf(log, "tcpdiag: run: %v: it will not be written; the command runs all the same\n", err)
	}
	before, err := readBaseline(o.baseline)
	if err != nil {
		return &command.RunError{Code: ExitFailed, Err: err}
	}
	// The command is not ended by what ends tcpdiag's other commands: it gets the signal
	// and ends by itself, and what became of its clients is said.
	ended := ctx
	ctx = context.WithoutCancel(ctx)
	var docs []api.Run
	for i := range o.repeat {
		doc, err := o.once(ctx, ended.Done(), log, args)
		if err != nil && len(docs) > 0 && ended.Err() != nil { // before the next run began: the others are over
			break
		}
		if err != nil {
			return err
		}
		docs = append(docs, doc)
		if doc.ExitCode != 0 || ended.Err() != nil { // a test that failed is not repeated
			break
		}
		if o.repeat > 1 && !o.quiet {
			fmt.Fprintf(log, "tcpdiag: run %d of %d is over\n", i+1, o.repeat)
		}
	}
	doc := api.JoinRuns(docs, func(a, b *api.Run) bool { return failOnStatus(a.Status) > failOnStatus(b.Status) })
	doc.ExitCode = docs[len(docs)-1].ExitCode
	return o.end(log, &doc, args, before)
}

// once runs the command, and returns what was seen meanwhile.
func (o *runOptions) once(ctx context.Context, stopped <-chan struct{}, log io.Writer, args []string) (doc api.Run, err error) {
	w := o.observe(ctx, stopped)
	defer w.close()
	select {
	case <-stopped:
		return doc, &command.RunError{Code: ExitFailed, Err: errors.New("ended by a signal before the command was started")}
	default:
	}
	if w.err != nil {
		fmt.Fprintf(log, "tcpdiag: nothing is observed, the command runs all the same: %v\n", w.err)
	}
	c, err := passthrough.Start(args)
	var cannot *passthrough.StartError
	if errors.As(err, &cannot) {
		return doc, &command.RunError{Code: cannot.Code, Err: cannot}
	}
	code := w.follow(c, o, log)
	c.Close()
	var results []*loadtest.Result
	if w.recorder != nil {
		results = w.recorder.Results(o.slo)
	}
	doc = api.NewRun(w.recorder, results)
	doc.Seconds, doc.Command, doc.ExitCode = w.lasted.Seconds(), filepath.Base(args[0]), code
	doc.Version, doc.SLOSeconds = version.Version, o.slo.Seconds()
	if w.err != nil {
		doc.Problem = w.err.Error()
	}
	return doc, nil
}

// end writes what there is to say, and makes the exit code.
func (o *runOptions) end(log io.Writer, doc *api.Run, args []string, before *api.Run) error {
	worst := failOnStatus(doc.Status)
	doc.Failed = o.failOn != "" && worst >= failOnStatus(o.failOn)
	err := errors.Join(
		runreport.Text(log, doc, before, command.TextOptionsOf(log)),
		runreport.WriteTo(o.json, "--json", func(f io.Writer) error { return runreport.JSON(f, doc) }),
		runreport.WriteTo(o.junit, "--junit", func(f io.Writer) error { return runreport.JUnit(f, doc) }),
		runreport.WriteTo(o.markdown, "--markdown", func(f io.Writer) error { return runreport.Markdown(f, doc, before) }),
		runreport.WriteTo(o.report, "--report", func(f io.Writer) error {
			return loadreport.Write(f, loadreport.Report{Run: doc, Before: before, Command: args})
		}),
	)
	switch {
	case doc.ExitCode != 0:
		if err != nil {
			fmt.Fprintf(log, "tcpdiag: %v\n", err)
		}
		return &command.RunError{Code: doc.ExitCode}
	case err != nil:
		return &command.RunError{Code: ExitFailed, Err: err}
	case doc.Problem != "" && (o.failOn != "" || o.json+o.junit+o.markdown+o.report != ""):
		return &command.RunError{Code: ExitFailed, Err: fmt.Errorf("nothing was observed: %s", doc.Problem)}
	case doc.Failed:
		return &command.StatusError{Status: worst}
	}
	return nil
}

// outputs are the files to write, by their flags.
func (o *runOptions) outputs() [][2]string {
	return [][2]string{{"--json", o.json}, {"--junit", o.junit}, {"--markdown", o.markdown}, {"--report", o.report}}
}

// apart: no two results go into one file.
func (o *runOptions) apart() error {
	asked := make(map[string]string)
	for _, f := range o.outputs() {
		flag, name := f[0], f[1]
		if other := asked[name]; name != "" && other != "" {
			return command.Usagef("%s and %s would both write to %q", other, flag, name)
		}
		asked[name] = flag
	}
	return nil
}

// unwritable tries each file before the command runs.
func (o *runOptions) unwritable() (errs []error) {
	for _, f := range o.outputs() {
		flag, name := f[0], f[1]
		if name == "" || name == "-" {
			continue
		}
		_, err := os.Lstat(name)
		isNew := errors.Is(err, os.ErrNotExist)
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666) //nolint:gosec // as os.Create
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
			continue
		}
		_ = file.Close()
		if isNew {
			_ = os.Remove(name) // it is written at the end
		}
	}
	return errs
}

func readBaseline(name string) (*api.Run, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no baseline is asked for
	}
	doc, err := api.ReadRun(name)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", err)
	}
	return doc, nil
}
