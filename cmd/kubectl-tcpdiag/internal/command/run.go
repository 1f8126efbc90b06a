package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/loadreport"
	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/passthrough"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

// exitRunFailed is what tcpdiag run ends with where it failed itself.
const exitRunFailed = 125

// codeError ends run with a code of its own; err is nil where there is nothing to say.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return fmt.Sprint(e.err) }

// runOptions are the flags of run.
type runOptions struct {
	*options
	failOn                        string
	slo, settle                   time.Duration
	json, junit, markdown, report string
}

func newRun(o *options) *cobra.Command {
	r := runOptions{options: o}
	cmd := &cobra.Command{
		Use:   "run [POD | TYPE/NAME]... -- COMMAND [ARG...]",
		Short: "Run a load test here, and say what became of its clients in the pod and why",
		Long: `run starts COMMAND on this machine, asks whoever watches the pods once a second while
it runs, and ends with the answer for the whole run, as tcpdiag run does for servers
of its own machine.

COMMAND keeps its input, output, terminal and signals, and its exit code. Only where
that is 0 and --fail-on is met it is 10 (warning), 11 (saturated), 12 (losing) or 13
(down). 125: nothing was observed, COMMAND ran all the same if it could be started;
126: it could not be started; 127: there is no such command.

Clients are counted where the agent of the node or the sidecar may (CAP_NET_RAW), by an
ephemeral container never.`,
		Example: `  kubectl tcpdiag run deploy/orders -- k6 run load.js
  kubectl tcpdiag run orders-7f9c6d5b4-x2x5z --slo 500ms --report load.html -- k6 run load.js
  kubectl tcpdiag run -l app=orders --fail-on losing --junit tcpdiag.xml -- k6 run load.js`,
		ValidArgsFunction: o.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 || dash == len(args) {
				return &codeError{exitRunFailed, errors.New("run needs the command of the load test after --, for example: kubectl tcpdiag run deploy/orders -- k6 run load.js")}
			}
			if s := api.StatusNamed(r.failOn); r.failOn != "" && (s < model.StatusWarning || s.String() != r.failOn) {
				return &codeError{exitRunFailed, fmt.Errorf("--fail-on %q: give warning, saturated, losing or down", r.failOn)}
			}
			return r.run(cmd, args[:dash], args[dash:])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.failOn, "fail-on", "", "exit with 10 to 13 if a listener was as bad, or worse: warning, saturated, losing or down")
	flags.DurationVar(&r.slo, "slo", 0, "how long a client may wait for its answer, such as 500ms")
	flags.DurationVar(&r.settle, "settle", 5*time.Second, "wait after COMMAND for the clients of which it is not known yet how they end, at most this long")
	flags.StringVar(&r.json, "json", "", "write the result as JSON to this file")
	flags.StringVar(&r.junit, "junit", "", "write the result as JUnit XML to this file")
	flags.StringVar(&r.markdown, "markdown", "", "write the result as Markdown to this file")
	flags.StringVar(&r.report, "report", "", "write the result as a self-contained page to this file")
	return cmd
}

func (r *runOptions) run(cmd *cobra.Command, targets, command []string) error {
	log := cmd.ErrOrStderr()
	// What ends kubectl tcpdiag's other commands is the load test's own.
	ctx := context.WithoutCancel(cmd.Context())
	cmd.SetContext(ctx)
	recorder, results, problem := r.begin(cmd, targets)
	c, err := passthrough.Start(command)
	var cannot *passthrough.StartError
	if errors.As(err, &cannot) {
		return &codeError{cannot.Code, cannot}
	}
	began := time.Now()
	code := r.follow(ctx, c, recorder, results)
	c.Close()
	var seen []*loadtest.Result
	if recorder != nil {
		seen = recorder.Results(r.slo)
	}
	doc := api.NewRun(recorder, seen)
	doc.Seconds, doc.Command, doc.ExitCode = time.Since(began).Seconds(), filepath.Base(command[0]), code
	doc.Version, doc.SLOSeconds, doc.Problem = version.Version, r.slo.Seconds(), problem
	return r.end(log, &doc, command)
}

// begin takes the first answer of the pods; what was counted before is not the run's. Why nothing is
// observed is a problem of the result: the load test runs all the same.
func (r *runOptions) begin(cmd *cobra.Command, targets []string) (recorder *loadtest.Recorder, results []result, problem string) {
	log := cmd.ErrOrStderr()
	results, err := r.results(cmd, targets)
	if err == nil {
		sayWays(log, results)
		if err = failures(log, results); listeners(results) > 0 {
			err = nil
		}
	}
	if err != nil {
		fmt.Fprintf(log, "tcpdiag: nothing is observed, the command runs all the same: %v\n", err)
		return nil, nil, err.Error()
	}
	return loadtest.NewRecorder(merged(results).Model()), results, ""
}

// decidedIn is how soon after the command's end its last clients are in an agent's answer, which is a second old.
const decidedIn = 2 * time.Second

// follow records until the command has ended and its clients are settled.
func (r *runOptions) follow(ctx context.Context, c *passthrough.Child, recorder *loadtest.Recorder, results []result) (code int) {
	if recorder == nil {
		return <-c.Ended
	}
	snapshots := make(chan *model.Snapshot)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
			again(ctx, results)
			select {
			case snapshots <- merged(results).Model():
			case <-ctx.Done():
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	began, ended, settled := time.Now(), c.Ended, (<-chan time.Time)(nil)
	for {
		select {
		case s := <-snapshots:
			recorder.Observe(s)
			if settled != nil && time.Since(began) >= recorder.Ended+decidedIn && recorder.Open() == 0 {
				return code
			}
		case code = <-ended:
			recorder.Ended = time.Since(began)
			ended, settled = nil, time.After(max(r.settle, time.Second)) // an agent's answer is a second old
		case <-settled:
			return code
		case <-c.Late: // whoever waits has the answer now
			return code
		}
	}
}

func (r *runOptions) end(log io.Writer, doc *api.Run, command []string) error {
	worst := api.StatusNamed(doc.Status)
	doc.Failed = r.failOn != "" && worst >= api.StatusNamed(r.failOn)
	err := errors.Join(
		runreport.Text(log, doc, nil, screenOf(log)),
		runreport.WriteTo(r.json, "--json", func(w io.Writer) error { return runreport.JSON(w, doc) }),
		runreport.WriteTo(r.junit, "--junit", func(w io.Writer) error { return runreport.JUnit(w, doc) }),
		runreport.WriteTo(r.markdown, "--markdown", func(w io.Writer) error { return runreport.Markdown(w, doc, nil) }),
		runreport.WriteTo(r.report, "--report", func(w io.Writer) error {
			return loadreport.Write(w, loadreport.Report{Run: doc, Command: command})
		}),
	)
	switch {
	case doc.ExitCode != 0:
		return &codeError{doc.ExitCode, err}
	case err != nil:
		return &codeError{exitRunFailed, err}
	case doc.Problem != "" && (r.failOn != "" || r.json+r.junit+r.markdown+r.report != ""):
		return &codeError{exitRunFailed, fmt.Errorf("nothing was observed: %s", doc.Problem)}
	case doc.Failed:
		return &failure{&statusError{worst}}
	}
	return nil
}
