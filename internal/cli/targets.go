package cli

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

// procMount is where the kernel shows the processes.
const procMount = "/proc"

// targets are the flags common to snapshot, watch and agent: the targets, and
// limits that beat the discovered ones.
type targets struct {
	ports    ports
	pids     pids
	all      bool
	allNetNS bool
	limits   limits
	actuator string

	handshakes clients.Mode

	kubeletLogs string
}

// limits are numbers given by hand; -1 for maxConnections means no limit.
type limits struct{ maxConnections, acceptCount, maxThreads limit }

func (t *targets) register(flags *pflag.FlagSet) {
	flags.VarP(&t.ports, "port", "p", "port to report; \"down\" if nothing listens on it (repeatable)")
	flags.Var(&t.pids, "pid", "process whose listeners are reported, in its network namespace (repeatable)")
	flags.BoolVar(&t.all, "all", false, "report every listener, not only Tomcat's")
	flags.BoolVar(&t.allNetNS, "all-namespaces", false, "report the listeners of every network namespace that has a process; a --port then counts as down only where something has listened on it before")
	t.limits.maxConnections.least, t.limits.acceptCount.least, t.limits.maxThreads.least = -1, 1, 1
	flags.Var(&t.limits.maxConnections, "max-connections", "Tomcat's maxConnections, -1 for no limit (default: discovered)")
	flags.Var(&t.limits.acceptCount, "accept-count", "Tomcat's acceptCount as configured (default: discovered)")
	flags.Var(&t.limits.maxThreads, "max-threads", "Tomcat's maxThreads (default: discovered)")
	flags.StringVar(&t.actuator, "actuator", "", "base URL of the application's Actuator to ask, such as http://127.0.0.1:8081/actuator")
	flags.StringVar(&t.kubeletLogs, "kubelet-logs", kubelet.DefaultLogs, "where the kubelet's folders pods and containers are, whose names name a listener's pod")
	t.handshakes = clients.Auto
	flags.Var(&t.handshakes, "handshakes", "count clients beside packets by following TCP handshakes (addresses and ports, no payload), which needs CAP_NET_RAW: auto (where it is allowed), on or off")
}

// follower adds clients to the snapshots of a scheduler.
func (t *targets) follower(s *schedule.Scheduler) (*clients.Follower, error) {
	proc, err := hostproc.NewFS(procMount)
	if err != nil {
		return nil, err
	}
	f := clients.NewFollower(t.handshakes, s, clients.NewOpener(procMount, proc))
	s.Follow(f)
	return f, nil
}

// options fills in the sampler's options.
func (t *targets) options(o *schedule.Options) {
	o.Ports, o.PIDs, o.All, o.AllNamespaces, o.Actuator = t.ports, t.pids, t.all, t.allNetNS, t.actuator
	o.Limits, o.KubeletLogs = t.limits.overrides(), t.kubeletLogs
}

// add takes the ports that were given as arguments.
func (t *targets) add(args []string) error {
	for _, arg := range args {
		if err := t.ports.Set(arg); err != nil {
			return usagef("%q: %v", arg, err)
		}
	}
	return nil
}

// portsOnly takes ports as arguments.
func portsOnly(cmd *cobra.Command, args []string) error {
	return new(targets).add(args)
}

// commandOrPorts says of what is neither a port nor a command which one is near.
func commandOrPorts(root *cobra.Command, args []string) error {
	if len(args) > 0 && !isNumber(args[0]) {
		return unknownCommand(root, args[0])
	}
	return portsOnly(root, args)
}

func isNumber(arg string) bool {
	_, err := strconv.ParseFloat(arg, 64)
	return err == nil
}

func (t *targets) validate() error {
	if t.all && len(t.ports)+len(t.pids) > 0 {
		return usagef("--all reports every listener; leave it out, or --port and --pid")
	}
	if t.allNetNS && len(t.pids) > 0 {
		return usagef("--all-namespaces and --pid %s: a process is in one network namespace; leave one of the two out", &t.pids)
	}
	if t.actuator == "" {
		return nil
	}
	if err := config.CheckURL("--actuator", t.actuator); err != nil {
		return usagef("%v", err)
	}
	return nil
}

func (l limits) overrides() watchlist.Overrides {
	return watchlist.Overrides{
		MaxConnections: watchlist.ByHand(l.maxConnections.value, "flag --max-connections"),
		AcceptCount:    watchlist.ByHand(l.acceptCount.value, "flag --accept-count"),
		MaxThreads:     watchlist.ByHand(l.maxThreads.value, "flag --max-threads"),
	}
}

// newScheduler opens the sources of a real machine.
func newScheduler(o schedule.Options) (*schedule.Scheduler, error) {
	proc, err := hostproc.NewFS(procMount)
	if err != nil {
		return nil, err
	}
	servers := discovery.NewDiscoverer(proc, discovery.WithExaminer(children()))
	owners := owner.New(proc)
	owners.CommandLines(servers.Numbers)
	return schedule.New(schedule.Sources{Sources: watchlist.Sources{
		Mount: procMount, Proc: proc, Owners: owners, Tomcat: servers,
		Pod: kubelet.NewOwn(os.Getenv, cgroup.PodOf(proc, os.Getpid()).UID),
	}}, o)
}

// ports is a repeatable flag of TCP ports.
type ports []uint16

func (p *ports) Type() string   { return "port" }
func (p *ports) String() string { return join(*p) }

func (p *ports) Set(s string) error {
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
