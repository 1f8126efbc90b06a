// Package command has what several commands of the command line share: which listeners are
// meant and how they are read (targets.go), the form of the output and what the terminal can show
// (output.go), one snapshot after the other (follow.go), recordings (recording.go), words that the shell
// completes (completion.go), and how errors become exit codes (exit.go). It knows no command but the hidden one
// that reads a process's configuration.
package command

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/config"
	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/kubelet"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// ProcMount is where the kernel shows the processes.
const ProcMount = "/proc"

// Targets are the flags common to snapshot, watch and agent: the targets, and
// limits that beat the discovered ones.
type Targets struct {
	Ports    Ports
	Pids     pids
	All      bool
	AllNetNS bool
	Limits   limits
	actuator string

	Handshakes clients.Mode

	kubeletLogs string
}

// limits are numbers given by hand; -1 for maxConnections means no limit.
type limits struct{ maxConnections, acceptCount, maxThreads limit }

// Register adds the flags.
func (t *Targets) Register(flags *pflag.FlagSet) {
	flags.VarP(&t.Ports, "port", "p", "port to report; \"down\" if nothing listens on it (repeatable)")
	flags.Var(&t.Pids, "pid", "process whose listeners are reported, in its network namespace (repeatable)")
	flags.BoolVar(&t.All, "all", false, "report every listener, not only Tomcat's")
	flags.BoolVar(&t.AllNetNS, "all-namespaces", false, "report the listeners of every network namespace that has a process; a --port then counts as down only where something has listened on it before")
	t.Limits.maxConnections.least, t.Limits.acceptCount.least, t.Limits.maxThreads.least = -1, 1, 1
	flags.Var(&t.Limits.maxConnections, "max-connections", "Tomcat's maxConnections, -1 for no limit (default: discovered)")
	flags.Var(&t.Limits.acceptCount, "accept-count", "Tomcat's acceptCount as configured (default: discovered)")
	flags.Var(&t.Limits.maxThreads, "max-threads", "Tomcat's maxThreads (default: discovered)")
	flags.StringVar(&t.actuator, "actuator", "", "base URL of the application's Actuator to ask, such as http://127.0.0.1:8081/actuator")
	flags.StringVar(&t.kubeletLogs, "kubelet-logs", kubelet.DefaultLogs, "where the kubelet's folders pods and containers are, whose names name a listener's pod")
	t.Handshakes = clients.Auto
	flags.Var(&t.Handshakes, "handshakes", "count clients beside packets by following TCP handshakes (addresses and ports, no payload), which needs CAP_NET_RAW: auto (where it is allowed), on or off")
}

// Follower adds clients to the snapshots of a scheduler.
func (t *Targets) Follower(s *schedule.Scheduler) (*clients.Follower, error) {
	proc, err := hostproc.NewFS(ProcMount)
	if err != nil {
		return nil, err
	}
	f := clients.NewFollower(t.Handshakes, s, clients.NewOpener(ProcMount, proc))
	s.Follow(f)
	return f, nil
}

// Options fills in the sampler's options.
func (t *Targets) Options(o *schedule.Options) {
	o.Ports, o.PIDs, o.All, o.AllNamespaces, o.Actuator = t.Ports, t.Pids, t.All, t.AllNetNS, t.actuator
	o.Limits, o.KubeletLogs = t.Limits.Overrides(), t.kubeletLogs
}

// Add takes the ports that were given as arguments.
func (t *Targets) Add(args []string) error {
	for _, arg := range args {
		if err := t.Ports.Set(arg); err != nil {
			return Usagef("%q: %v", arg, err)
		}
	}
	return nil
}

// PortsOnly takes ports as arguments.
func PortsOnly(cmd *cobra.Command, args []string) error {
	return new(Targets).Add(args)
}

// OrPorts says of what is neither a port nor a command which one is near.
func OrPorts(root *cobra.Command, args []string) error {
	if len(args) > 0 && !isNumber(args[0]) {
		return unknownCommand(root, args[0])
	}
	return PortsOnly(root, args)
}

func isNumber(arg string) bool {
	_, err := strconv.ParseFloat(arg, 64)
	return err == nil
}

// Validate is an error where flags contradict each other.
func (t *Targets) Validate() error {
	if t.All && len(t.Ports)+len(t.Pids) > 0 {
		return Usagef("--all reports every listener; leave it out, or --port and --pid")
	}
	if t.AllNetNS && len(t.Pids) > 0 {
		return Usagef("--all-namespaces and --pid %s: a process is in one network namespace; leave one of the two out", &t.Pids)
	}
	if t.actuator == "" {
		return nil
	}
	if err := config.CheckURL("--actuator", t.actuator); err != nil {
		return Usagef("%v", err)
	}
	return nil
}

// Overrides are the limits given by hand.
func (l limits) Overrides() watchlist.Overrides {
	return watchlist.Overrides{
		MaxConnections: watchlist.ByHand(l.maxConnections.value, "flag --max-connections"),
		AcceptCount:    watchlist.ByHand(l.acceptCount.value, "flag --accept-count"),
		MaxThreads:     watchlist.ByHand(l.maxThreads.value, "flag --max-threads"),
	}
}

// NewScheduler opens the sources of a real machine.
func NewScheduler(o schedule.Options) (*schedule.Scheduler, error) {
	proc, err := openProc()
	if err != nil {
		return nil, err
	}
	servers := discovery.NewDiscoverer(proc, discovery.WithExaminer(children()))
	owners := owner.New(proc)
	owners.CommandLines(servers.Numbers)
	owners.Containers(func(pid int) (uint64, bool) { return cgroup.ID(proc, pid) })
	return schedule.New(schedule.Sources{Sources: watchlist.Sources{
		Mount: ProcMount, Proc: proc, Owners: owners, Discovery: servers,
		Pod: kubelet.NewSelf(os.Getenv, cgroup.PodOf(proc, os.Getpid()).UID),
	}}, o)
}

// Ports is a repeatable flag of TCP ports.
type Ports []uint16

// Type is what help calls the value.
func (p *Ports) Type() string { return "port" }

// String is the ports with commas.
func (p *Ports) String() string { return join(*p) }

// Set adds a port.
func (p *Ports) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("a port is a number from 1 to 65535")
	}
	*p = append(*p, uint16(n))
	return nil
}

// pids is a repeatable flag of process ids.
type pids []int

func (p *pids) Type() string   { return "pid" }
func (p *pids) String() string { return join(*p) }

func (p *pids) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n <= 0 {
		return fmt.Errorf("a process id is a positive number")
	}
	*p = append(*p, int(n))
	return nil
}

// limit is a flag that is either given or not.
type limit struct {
	least int
	value *int
}

func (l *limit) Type() string { return "int" }

func (l *limit) String() string {
	if l.value == nil {
		return ""
	}
	return strconv.Itoa(*l.value)
}

func (l *limit) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || int(n) < l.least || (l.least < 0 && n == 0) {
		if l.least < 0 {
			return fmt.Errorf("give a whole number from 1, or -1 for no limit")
		}
		return fmt.Errorf("give a whole number from %d", l.least)
	}
	l.value = new(int(n))
	return nil
}

func join[T uint16 | int](list []T) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = strconv.Itoa(int(v))
	}
	return strings.Join(words, ",")
}
