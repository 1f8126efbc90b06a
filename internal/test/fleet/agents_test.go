package fleet

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
	"github.com/tcpdiag/tcpdiag/internal/test/observability"
)

const (
	podsPerNode      = 20
	listenersPerPod  = 3
	listenersPerNode = podsPerNode * listenersPerPod
)

// agents stand for those of nodes of a cluster.
type agents struct {
	nodes   int
	started time.Time
	worst   [2]int // the node, and the pod on it, that loses clients
	down    int    // the node that expects a port
	targets []observability.Target
	owned   observability.Target // what kube-state-metrics says of the pods
	stop    func()               // answers no more scrapes
}

// serveAgents answers scrapes of all of them on one port.
func serveAgents(t *testing.T, nodes int) *agents {
	t.Helper()
	a := &agents{nodes: nodes, started: time.Now(), worst: [2]int{nodes * 137 / 250, 7}, down: nodes / 3}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	mux := http.NewServeMux()
	for n := range nodes {
		registry := promexport.NewRegistry(func() *model.Snapshot { return a.snapshot(n) }, a.started, promexport.Build{Version: "1.0.0"})
		mux.Handle(fmt.Sprintf("/%d/metrics", n), promexport.Handler(registry, slog.New(slog.DiscardHandler)))
		a.targets = append(a.targets, observability.Target{Addresses: []string{l.Addr().String()}, Labels: map[string]string{
			"__metrics_path__": fmt.Sprintf("/%d/metrics", n), "instance": fmt.Sprintf("10.0.%d.%d:10889", n/250, n%250), "node": nodeName(n),
		}})
	}
	mux.HandleFunc("/owners/metrics", a.owners)
	a.owned = observability.Target{Addresses: []string{l.Addr().String()}, Labels: map[string]string{"__metrics_path__": "/owners/metrics", "instance": "kube-state-metrics:8080"}}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	a.stop = func() { _ = server.Close() }
	t.Cleanup(a.stop)
	return a
}

// podsPerWorkload is how many pods a Deployment has; they are on as many nodes.
const podsPerWorkload = 10

// podOf are the namespace, ReplicaSet and name of a pod.
func (a *agents) podOf(n, pod int) (namespace, replicaSet, name string) {
	workload := n/podsPerWorkload*podsPerNode + pod
	replicaSet = fmt.Sprintf("service-%03d-7c9d8b6f5", workload)
	return fmt.Sprintf("team-%02d", workload%20), replicaSet, fmt.Sprintf("%s-%05d", replicaSet, n)
}

// owners are the series of kube-state-metrics that the rules of workloads ask for.
func (a *agents) owners(w http.ResponseWriter, _ *http.Request) {
	seen := make(map[string]bool)
	for n := range a.nodes {
		for pod := range podsPerNode {
			namespace, set, name := a.podOf(n, pod)
			fmt.Fprintf(w, "kube_pod_owner{namespace=%q,pod=%q,owner_kind=\"ReplicaSet\",owner_name=%q,owner_is_controller=\"true\"} 1\n", namespace, name, set)
			if !seen[set] {
				seen[set] = true
				fmt.Fprintf(w, "kube_replicaset_owner{namespace=%q,replicaset=%q,owner_kind=\"Deployment\",owner_name=%q,owner_is_controller=\"true\"} 1\n", namespace, set, set[:len("service-000")])
			}
		}
	}
}

func nodeName(n int) string { return fmt.Sprintf("worker-%d", n) }

// snapshot is what the agent of a node has at this moment.
func (a *agents) snapshot(n int) *model.Snapshot {
	s := &model.Snapshot{
		Time: time.Now(), Interval: time.Minute, ScanAge: new(250 * time.Millisecond),
		Self: model.Self{ScanInterval: time.Second, SourceUp: map[string]bool{"sock_diag": true, "owner": true}},
	}
	for pod := range podsPerNode {
		netns := uint64(4026531840 + pod)
		s.NetNS = append(s.NetNS, model.NetNS{
			ID:       netns,
			Counters: model.Counters{"ListenOverflows": 9, "ListenDrops": 9, "TCPReqQFullDrop": 0, "SyncookiesSent": 0, "OutRsts": 5, "AttemptFails": 6, "TCPSynRetrans": 7},
			Sysctl:   map[string]int{"somaxconn": 4096, "tcp_max_syn_backlog": 2048, "tcp_syncookies": 1, "tcp_abort_on_overflow": 0, "ip_local_port_range_min": 32768, "ip_local_port_range_max": 60999},
			Sockstat: map[string]int{"inuse": 10, "orphan": 0, "tw": 3, "alloc": 20, "mem": 2},
		})
		for i := range listenersPerPod {
			s.Listeners = append(s.Listeners, a.listener(n, pod, i, netns))
		}
	}
	if n == a.down {
		s.Targets = []model.Target{{Port: 8085, NetNS: s.NetNS[0].ID}}
	}
	return s
}

func (a *agents) listener(n, pod, i int, netns uint64) model.Listener {
	port := uint16(8080 + i)
	namespace, _, name := a.podOf(n, pod)
	since := uint64(time.Since(a.started).Seconds())
	l := model.Listener{
		ID:   model.ListenerID{NetNS: netns, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), port)},
		Port: port, Inode: 13201, Members: 1, Pod: &model.Pod{Namespace: namespace, Name: name, Container: "app"},
		Process: &model.Process{
			PID: 1000 + pod, Comm: "java", OpenFiles: new(300), OpenFilesLimit: new(20000), Threads: new(60),
			PodUID: fmt.Sprintf("0b51-%04d-%02d", n, pod), SafepointTime: new(time.Second), CPUThrottled: new(time.Second), RunDelay: new(time.Second),
		},
		Connector: &model.Connector{
			Server: "tomcat", Framework: "spring-boot", Version: "10.1.59", Protocol: "http-nio",
			MaxConnections: &model.Setting[int]{Value: 8192, Kind: model.SourceDefault}, AcceptCount: &model.Setting[int]{Value: 100, Kind: model.SourceDefault},
			MaxThreads: &model.Setting[int]{Value: 200, Kind: model.SourceDefault}, MinSpareThreads: &model.Setting[int]{Value: 10, Kind: model.SourceDefault}, PoolThreads: new(20),
		},
		SynBacklog:  &model.SynBacklog{Limit: 100},
		AcceptQueue: &model.AcceptQueue{Limit: 100, Peak: new(0)},
		Connections: &model.Connections{At: time.Now(), Accepted: 100, Phases: [model.NumPhases]int{model.InService: 20, model.Idle: 80}, Reset: new(0)},
		Limits:      limits(pod, 100, 20, 0),
	}
	l.Totals.Clients = &model.ClientTotals{Outcomes: [model.NumClientOutcomes]uint64{model.ClientConnected: 40 * since}, Answers: model.ClientAnswers{Known: true, Answered: 40 * since}}
	l.Totals.Fill.Observe(0)
	switch {
	case [2]int{n, pod} == a.worst && i == 0:
		l.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxConnections}
		l.AcceptQueue.Length = 101
		l.Connections.Accepted, l.Connections.Phases = 8192, [model.NumPhases]int{model.InService: 200, model.Waiting: 7992}
		l.Limits = limits(pod, 8192, 200, 101)
		l.Totals.Clients.Outcomes[model.ClientGaveUp] = 5 * since
		l.Totals.Dropped = map[model.DropKey]uint64{{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}: 20 * since}
		l.Totals.FullSeconds = float64(since)
	case (n*podsPerNode+pod)%100 == 50 && i == 1:
		l.Verdict = model.Verdict{Status: model.StatusWarning, Cause: model.CauseMaxThreads}
	}
	return l
}

func limits(pod, connections, threads, queue int) []model.Limit {
	one := func(name string, used, most int) model.Limit {
		return model.Limit{Name: name, Used: used, Max: most, Ratio: float64(used) / float64(most)}
	}
	return []model.Limit{one("syn_backlog", 0, 100), one("accept_queue", queue, 101), one("max_connections", connections, 8192), one("max_threads", threads, 200), one("open_files", 300+pod, 20000)}
}
