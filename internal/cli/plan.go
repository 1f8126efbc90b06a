package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/plan"
	"github.com/tcpdiag/tcpdiag/internal/render/planreport"
)

// planOptions are the flags of plan.
type planOptions struct {
	input       plan.Input
	timeoutFrom string
	fromPort    command.Ports
	output      string
}

func newPlanCommand() *cobra.Command {
	o := planOptions{input: plan.Input{
		Threads: 200, MaxConnections: 8192, AcceptCount: 100, // Tomcat's own
		ClientTimeout: time.Minute, ConnectTimeout: 30 * time.Second, // k6's
		SynRetries: plan.SynRetriesLinear, Syncookies: true,
		Somaxconn: 4096, MaxSynBacklog: 4096,
	}}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Predict before a load test which clients fail, and what would serve all",
		Long: `plan simulates a load on a Tomcat: SYNs and how Linux repeats them, the accept
queue of acceptCount + 1, the connections, the threads, a backend behind them,
and the timeouts of the clients. It prints what the clients would see, when each
stage fills and drains, and the smallest limits with which no client fails. It
sends nothing.

Each request uses its own connection (no keep-alive) and holds a thread for the
service time. A client that gives up frees nothing: its request keeps its place
and is executed, as in Tomcat. accept() is assumed to take no time.`,
		Example: `  tcpdiag plan --requests 10000 --service-time 5s --max-threads 1000 --connect-timeout 900ms
  tcpdiag plan --rate 4000 --duration 30s --service-time 60ms --client-timeout 5s --connect-timeout 5s
  tcpdiag plan --requests 10000 --service-time 5s --port 8080
  tcpdiag plan --rate 50 --duration 1m --service-time 10ms --max-threads 40 --backend-connections 10 --backend-time 400ms
  tcpdiag plan --requests 3000 --service-time 5s --output json | jq .smallest`,
		Args: cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error {
			if err := o.fromServer(cmd.Context(), cmd.Flags(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd.OutOrStdout())
		}),
	}
	o.register(cmd.Flags())
	command.OutputVar(cmd, &o.output, "text or json", "text", "json")
	command.Complete(cmd, "port", command.Listening(command.PortOf))
	for flag, words := range map[string][]string{
		"client-timeout-from": {"start", "connect"}, "syn-retries": {"linear", "exponential"},
	} {
		command.Complete(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func (o *planOptions) register(f *pflag.FlagSet) {
	in := &o.input
	f.SortFlags = false
	f.Var((*wholeNumber)(&in.Requests), "requests", "number of clients, each with one request; without --rate all at once")
	f.Var((*perSecond)(&in.Rate), "rate", "clients per second, whatever the server does (open loop)")
	f.Var((*command.TimeSpan)(&in.Duration), "duration", "how long clients keep coming at --rate")
	f.Var((*command.TimeSpan)(&in.ServiceTime), "service-time", "time a thread works on one request (required)")
	f.Var((*wholeNumber)(&in.BackendConnections), "backend-connections", "size of the connection pool to a backend that each request calls once; --service-time is then what the thread itself needs. How long the pool lets a thread wait (HikariCP: 30 s) is not modelled")
	f.Var((*command.TimeSpan)(&in.BackendTime), "backend-time", "time the backend takes to answer")
	f.VarP(&o.fromPort, "port", "p", "take the limits from the server that listens on this port")
	f.Var((*wholeNumber)(&in.Threads), "max-threads", "Tomcat's maxThreads, -1 for no limit (virtual threads)")
	f.Var((*wholeNumber)(&in.MaxConnections), "max-connections", "Tomcat's maxConnections, -1 for no limit")
	f.Var((*wholeNumber)(&in.AcceptCount), "accept-count", "Tomcat's acceptCount")
	f.Var((*command.TimeSpan)(&in.ClientTimeout), "client-timeout", "how long a client waits for its response, see --client-timeout-from; 0: for ever")
	f.StringVar(&o.timeoutFrom, "client-timeout-from", "start", "start: --client-timeout includes connecting (k6, curl -m, Go); connect: it runs from the connection (read timeouts of Java, Python)")
	f.Var((*command.TimeSpan)(&in.ConnectTimeout), "connect-timeout", "how long a client waits for its connection; 0: until its kernel gives up")
	f.Var((*command.TimeSpan)(&in.RoundTrip), "round-trip", "time to the server and back; 0: the clients run on the same host")
	f.StringVar((*string)(&in.SynRetries), "syn-retries", string(in.SynRetries), "the clients' kernel: linear (Linux 6.5 and newer: after 1, 2, 3, 4, 5, 7, 11 s) or exponential (1, 3, 7, 15 s)")
	f.BoolVar(&in.Syncookies, "syncookies", in.Syncookies, "net.ipv4.tcp_syncookies of the server")
	f.BoolVar(&in.AbortOnOverflow, "abort-on-overflow", false, "net.ipv4.tcp_abort_on_overflow of the server")
	f.Var((*wholeNumber)(&in.Somaxconn), "somaxconn", "net.core.somaxconn of the server; cuts --accept-count")
	f.Var((*wholeNumber)(&in.MaxSynBacklog), "max-syn-backlog", "net.ipv4.tcp_max_syn_backlog of the server; counts with --syncookies=false")
	f.SetNormalizeFunc(planFlag)
}

// planFlag takes the names that the flags had before, too.
func planFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "threads":
		name = "max-threads"
	case "from-port":
		name = "port"
	}
	return pflag.NormalizedName(name)
}

// validate also distinguishes a missing flag from one that is 0.
func (o *planOptions) validate(flags *pflag.FlagSet) error {
	switch {
	case !flags.Changed("requests") && !flags.Changed("rate"):
		return command.Usagef("plan needs a load: --requests N for a burst, or --rate R with --duration D")
	case !flags.Changed("service-time"):
		return command.Usagef("plan needs --service-time, the time a thread works on one request, for example --service-time 250ms")
	case o.timeoutFrom != "start" && o.timeoutFrom != "connect":
		return command.Usagef("--client-timeout-from %q: give start or connect", o.timeoutFrom)
	}
	o.input.TimeoutFromConnect = o.timeoutFrom == "connect"
	for _, name := range []string{"rate", "somaxconn", "max-syn-backlog"} {
		if f := flags.Lookup(name); f.Changed && f.Value.String() == "0" {
			return command.Usagef("--%s 0: must be more than 0", name)
		}
	}
	var wrong *plan.InputError
	if err := o.input.Validate(); errors.As(err, &wrong) {
		return command.Usagef("%v", wrong)
	}
	return command.ValidOutput(o.output)
}

func (o *planOptions) run(w io.Writer) error {
	p, err := plan.New(o.input)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return planreport.JSON(w, p)
	}
	return planreport.Text(w, p, command.TextOptionsOf(w))
}

// wholeNumber is an int flag whose complaint a person understands.
type wholeNumber int

func (n *wholeNumber) Type() string   { return "int" }
func (n *wholeNumber) String() string { return strconv.Itoa(int(*n)) }

func (n *wholeNumber) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return fmt.Errorf("give a whole number such as 200")
	}
	*n = wholeNumber(v)
	return nil
}

// perSecond is a rate flag.
type perSecond float64

func (r *perSecond) Type() string   { return "number" }
func (r *perSecond) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) }

func (r *perSecond) Set(s string) error {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("give a number of clients per second such as 4000")
	}
	*r = perSecond(v)
	return nil
}
