package proof

import (
	"fmt"
	"slices"
	"strings"
)

// Proof is something that takes minutes or hours to show, which CI does not run at
// every change.
type Proof struct {
	Name    string
	What    string
	Run     []string // a command, in Dir
	Select  string   // the flag that picks some of its cases: what follows is put behind it
	Dir     string   // from the root of the repository
	Minutes int
	Needs   []Need
	Root    bool
	Covers  []string // files and folders that a change makes it stale
	Results []string // files that it writes
}

// Need is a program and the Debian package that has it.
type Need struct{ Program, Package string }

func goTest(pkg, run, timeout string, more ...string) []string {
	return slices.Concat([]string{"go", "test", "-count=1", "-v", "-timeout", timeout, "-run", run, pkg}, more)
}

// All are the proofs, those first that are quick.
func All() []Proof {
	const deployments = "./internal/test/deployments"
	java := []Need{{"javac", "openjdk-17-jdk-headless"}, {"mvn", "maven"}}
	net := []Need{{"ip", "iproute2"}, {"ss", "iproute2"}, {"nft", "nftables"}}
	judging := []string{"internal/diagnosis", "internal/namespace", "internal/evidence", "internal/connections", "internal/losses", "internal/schedule"}
	finding := []string{"internal/discovery", "internal/owner", "internal/hostproc"}
	clients := []string{"internal/handshake", "internal/clients"}
	rigFiles := []string{"internal/test/rig", "internal/demo"}
	servers := slices.Concat(java, net)
	return []Proof{
		{
			Name: "mutated", What: "every parser of strangers' bytes on 10,000 mutations of its corpus", Minutes: 2,
			Run: goTest("./internal/...", "^Fuzz", "20m"), Covers: []string{"internal/discovery", "internal/hostproc", "internal/sockdiag", "internal/handshake", "internal/threaddump", "internal/incident", "internal/test/mutate"},
		},
		{
			Name: "dumps", What: "a thousand requests for thread dumps to JVMs that a signal would end or that cannot answer", Minutes: 1, Root: true, Needs: java,
			Run: goTest("./internal/threaddump", "Thousand|Standstill", "20m"), Covers: []string{"internal/threaddump"},
		},
		{
			Name: "kills", What: "a hundred incidents, agent and servers killed at a random moment: what is left of each recording", Minutes: 9, Root: true,
			Run: goTest("./internal/cli", "^TestLongKilledAtAnyMoment$", "30m"), Covers: []string{"internal/incident", "internal/agent"},
		},
		{
			Name: "docker", What: "the images and the compose file on a Docker engine that the test starts", Minutes: 6, Root: true,
			Needs: slices.Concat(java, []Need{{"dockerd", "docker.io"}, {"debootstrap", "debootstrap"}, {"iptables", "iptables"}}),
			Run:   goTest("./deploy/docker", ".", "20m"), Select: "-run", Covers: []string{"deploy/docker", "deploy/compose"},
		},
		{
			Name: "attacks", What: "hostile processes and neighbours against the built agent", Minutes: 15, Root: true, Needs: net,
			Run: goTest("./internal/test/attacks", ".", "60m", "-skip", "^Test(Mixed|TenTimes)$"), Select: "-run", Covers: slices.Concat(finding, []string{"internal/sandbox", "internal/test/attacks"}),
		},
		{
			Name: "attacks-mixed", What: "an hour of attacks and churn at once, a real Tomcat overloaded every five minutes: every incident recorded, memory flat", Minutes: 62, Root: true, Needs: servers,
			Run: goTest("./internal/test/attacks", "^TestMixed$", "80m"), Covers: slices.Concat(finding, clients, []string{"internal/sandbox", "internal/incident", "internal/web", "internal/test/attacks"}),
		},
		{
			Name: "attacks-long", What: "each attack that was reported, at its own rate for ten times as long, beside a neighbour whose incidents, limits and counts are to be complete", Minutes: 46, Root: true, Needs: net,
			Run: goTest("./internal/test/attacks", "^TestTenTimes$", "80m", "-parallel", "8"), Covers: slices.Concat(finding, clients, []string{"internal/sandbox", "internal/incident", "internal/web", "internal/agent", "internal/test/attacks"}),
		},
		{
			Name: "handshakes", What: "a million clients that count themselves, a flood of a million spoofed addresses, networks that delay and lose, 2,000 traces of a simulated kernel", Minutes: 3, Root: true, Needs: net,
			Run: goTest("./internal/handshake/...", "^Test(ManyClients|LongSpoofedFlood|Netem|Sockets)$", "60m"), Covers: clients,
		},
		{
			Name: "bursts", What: "ten bursts of five seconds between two scrapes that are a minute apart: each pages, with its clients", Minutes: 4, Root: true,
			Needs: slices.Concat(servers, []Need{{"prometheus", "prometheus"}, {"prometheus-alertmanager", "prometheus-alertmanager"}}),
			Run:   goTest("./internal/test/observability", "^TestLongBurstsBetweenRareScrapes$", "15m"), Covers: slices.Concat(clients, []string{"deploy/prometheus", "internal/promexport", "internal/losses", "internal/test/observability"}), Results: []string{"docs/results/bursts.md"},
		},
		{
			Name: "accounts", What: "clients that keep their own accounts, and the kernel's trace of its sockets, beside what the handshakes say: a hundred shapes of a fresh seed", Minutes: 35, Root: true,
			Run: goTest("./internal/test/accounts", "^TestFull(Matrix|Shapes|ShapesOfFewPorts)$", "180m", "-parallel", "8"), Covers: slices.Concat(clients, []string{"internal/test/accounts"}), Results: []string{"docs/results/accounts.md"},
		},
		{
			Name: "churn", What: "an hour of clients that keep coming, the server, the tap and an agent beside it restarted again and again: who was let in is who the kernel made a socket for", Minutes: 57, Root: true,
			Run: goTest("./internal/test/accounts", "^TestChurn$", "90m"), Covers: clients, Results: []string{"docs/results/churn.md"},
		},
		{
			Name: "browser", What: "the agent's page and the documentation's site in a real Chromium", Minutes: 8, Dir: "internal/test/browser", Needs: []Need{{"chromium", "chromium"}, {"npm", "npm"}},
			Run: []string{"./prove.sh"}, Select: "-run", Covers: []string{"internal/web", "deploy/site", "internal/test/browser"},
		},
		{
			Name: "assistants", What: "tcpdiag mcp against the protocol's Python library and its inspector, and a recorded incident asked for", Minutes: 5, Dir: "internal/test/assistants", Needs: []Need{{"python3", "python3-venv"}, {"npm", "npm"}},
			Run: []string{"./prove.sh"}, Select: "-run", Covers: []string{"internal/assistant", "internal/test/assistants"}, Results: []string{"docs/results/assistants.md"},
		},
		{
			Name: "cluster", What: "the real control plane, kubelet and containerd: the READMEs' commands, kubectl tcpdiag in each of its ways, names of fifty pods that are replaced, an alert as it arrives, scaling", Minutes: 22, Root: true, Dir: "deploy/kubernetes/cluster",
			Needs: slices.Concat(java, []Need{{"debootstrap", "debootstrap"}, {"containerd", "containerd"}, {"runc", "runc"}, {"iptables", "iptables"}, {"conntrack", "conntrack"}, {"ip", "iproute2"}, {"prometheus", "prometheus"}, {"prometheus-alertmanager", "prometheus-alertmanager"}}),
			Run:   []string{"./prove.sh"}, Covers: []string{"deploy/kubernetes", "deploy/helm", "cmd/kubectl-tcpdiag", "internal/kubelet"},
		},
		{
			Name: "manifests", What: "the manifests read by the API server's own validation", Minutes: 10, Dir: "deploy/kubernetes",
			Run: []string{"bash", "-c", "set -o pipefail; go run . -all | (cd validate && go run .)"}, Covers: []string{"deploy/kubernetes", "deploy/helm"},
		},
		{
			Name: "krew", What: "kubectl tcpdiag for every platform: krew's validator takes the manifest, and krew installs each archive", Minutes: 5, Root: true,
			Needs: []Need{{"rpm", "rpm"}},
			Run:   []string{"env", "EVERY_PLATFORM=1", "make", "package"}, Covers: []string{"deploy/packages", "deploy/krew", "cmd/kubectl-tcpdiag"},
		},
		{
			Name: "archive", What: "incidents into a real OpenTelemetry Collector, an S3 server and Azurite, which are away for a while", Minutes: 4, Dir: "internal/test/archive",
			Needs: []Need{{"npm", "npm"}},
			Run:   []string{"./prove.sh"}, Select: "-run", Covers: []string{"cmd/tcpdiag-archive", "deploy/collector", "internal/test/archive"},
		},
		{
			Name: "alerts", What: "every alert fired by real servers and agents, through a real Prometheus and Alertmanager, and its text as it arrived", Minutes: 17, Root: true,
			Needs: slices.Concat(java, net, []Need{{"prometheus", "prometheus"}, {"prometheus-alertmanager", "prometheus-alertmanager"}}),
			Run:   goTest("./internal/test/observability", "^TestFullEveryAlertFires$", "30m"), Covers: []string{"deploy/prometheus", "internal/promexport", "internal/test/observability"}, Results: []string{"docs/results/alerts.md"},
		},
		{
			Name: "dashboards", What: "both dashboards drawn with Grafana's own components, of what a real Prometheus has of servers in every state: what each says, and the pictures of dashboards/README.md", Minutes: 6, Root: true, Dir: "internal/test/observability/pictures",
			Needs: slices.Concat(java, []Need{{"prometheus", "prometheus"}, {"prometheus-alertmanager", "prometheus-alertmanager"}, {"chromium", "chromium"}, {"npm", "npm"}, {"setpriv", "util-linux"}}),
			Run:   []string{"./prove.sh"}, Covers: []string{"dashboards", "deploy/prometheus", "internal/promexport", "internal/test/observability"},
		},
		{
			Name: "fleet", What: "a real Prometheus that scrapes up to 5,000 simulated pods: what rules, `tcpdiag fleet` and the dashboard take", Minutes: 13, Needs: []Need{{"prometheus", "prometheus"}},
			Run: goTest("./internal/test/fleet", "^TestFleet$/", "40m"), Select: "-run", Covers: []string{"deploy/prometheus", "dashboards", "internal/fleet", "internal/promexport", "internal/test/fleet"}, Results: []string{"docs/results/fleet.md"},
		},
		{
			Name: "scale", What: "large and busy hosts, a million sockets: how old what the agent says is, and what it takes", Minutes: 10, Root: true,
			Run: []string{"go", "run", "./internal/test/scale"}, Select: "-only", Covers: slices.Concat(judging, []string{"internal/sockdiag", "internal/test/scale", "internal/test/rig"}), Results: []string{"docs/results/scale.md"},
		},
		{
			Name: "bench", What: "every budget against the bare system calls, on 190,000 sockets", Minutes: 15, Root: true, Needs: slices.Concat(java, net, []Need{{"wrk", "wrk"}}),
			Run: []string{"go", "run", "./internal/test/bench"}, Covers: slices.Concat(judging, []string{"internal/sockdiag", "internal/promexport", "internal/test/bench"}), Results: []string{"docs/results/bench.md"},
		},
		{
			Name: "bench-tap", What: "what following handshakes costs a Tomcat at its fastest, and an agent", Minutes: 20, Root: true, Needs: slices.Concat(java, net, []Need{{"wrk", "wrk"}}),
			Run: []string{"go", "run", "./internal/test/bench", "-tap", "800", "-deadline", "40m"}, Covers: clients, Results: []string{"docs/results/bench-tap.md"},
		},
		{
			Name: "soak", What: "half an hour at a thousand samples a second, and those of 500 listeners: nothing grows; a thousand readings of a random part of a server's connections", Minutes: 35, Root: true,
			Run: goTest("./internal/schedule", "^Test(Soak|LongTenThousandSamplesLeakNothing|LongSampledPhases)$", "45m"), Covers: []string{"internal/schedule", "internal/namespace", "internal/sockdiag"},
		},
		{
			Name: "deployments", What: "servers deployed in unusual ways, really overloaded, held against their MBeans", Minutes: 40, Root: true,
			Needs: slices.Concat(servers, []Need{{"nginx", "nginx-light"}, {"haproxy", "haproxy"}, {"jsvc", "jsvc"}, {"pip", "python3-pip"}}),
			Run:   goTest(deployments, "^TestDeployment$/", "90m"), Select: "-run", Covers: slices.Concat(judging, finding, rigFiles, []string{"internal/test/deployments"}), Results: []string{"docs/results/deployments.md"},
		},
		{
			Name: "reports", What: "what people have told in public of servers that did not answer, rebuilt small", Minutes: 17, Root: true, Needs: servers,
			Run: goTest(deployments, "^TestReports$/", "60m"), Select: "-run", Covers: slices.Concat(judging, finding, rigFiles, []string{"internal/test/deployments"}), Results: []string{"docs/results/reports.md"},
		},
		{
			Name: "advice", What: "each advice followed on the real server: the same load before and after", Minutes: 20, Root: true, Needs: servers,
			Run: goTest(deployments, "^TestAdvice$/", "90m"), Select: "-run", Covers: slices.Concat([]string{"internal/diagnosis"}, rigFiles, []string{"internal/test/deployments"}), Results: []string{"docs/results/advice.md"},
		},
		{
			Name: "predictions", What: "what an advised change was said to do, and what came of it on the real server", Minutes: 40, Root: true, Needs: servers,
			Run: goTest(deployments, "^TestPredictions$/", "60m"), Select: "-run", Covers: slices.Concat([]string{"internal/predict", "internal/plan"}, rigFiles), Results: []string{"docs/results/predictions.md"},
		},
		{
			Name: "newcomers", What: "five situations, from the first command to the right step: commands typed and lines read", Minutes: 2, Root: true, Needs: servers,
			Run: goTest(deployments, "^TestNewcomers$/", "20m"), Select: "-run", Covers: []string{"internal/diagnosis", "internal/render"}, Results: []string{"docs/results/newcomers.md"},
		},
		{
			Name: "overloads", What: "fifty overloads drawn from a seed, whose causes their arithmetic gives", Minutes: 12, Root: true, Needs: servers,
			Run: goTest(deployments, "^TestOverloads$", "90m"), Covers: slices.Concat(judging, rigFiles), Results: []string{"docs/results/overloads-1.md"},
		},
		{
			Name: "draws-kept", What: "the drawn deployments of which something wrong was said once", Minutes: 9, Root: true,
			Needs: servers,
			Run:   goTest("./internal/test/draws", "^TestKept$", "40m"), Covers: slices.Concat(judging, finding, clients, rigFiles, []string{"internal/test/draws"}),
		},
		{
			Name: "draws", What: "deployments that nobody chose, drawn from a seed: server, limits, handlers, clients, fault and who asks", Minutes: 60, Root: true,
			Needs: servers,
			Run:   goTest("./internal/test/draws", "^TestDraws$", "180m"), Covers: slices.Concat(judging, finding, clients, rigFiles, []string{"internal/test/draws"}), Results: []string{"docs/results/draws.md"},
		},
		{
			Name: "healthy", What: "an hour of a healthy load of every kind of client: anything but ok is a false alarm", Minutes: 62, Root: true, Needs: servers,
			Run: goTest(deployments, "^TestHealthy$", "90m", "-lasts", "1h"), Covers: slices.Concat(judging, rigFiles), Results: []string{"docs/results/healthy.md"},
		},
		{
			Name: "starts", What: "servers that start on a busy machine, and everyday events: anything but ok is a false alarm while no client fails or waits", Minutes: 9, Root: true, Needs: servers,
			Run: goTest(deployments, "^TestStarts$/", "40m"), Select: "-run", Covers: slices.Concat(judging, rigFiles), Results: []string{"docs/results/starts.md"},
		},
		{
			Name: "waits", What: "what the threads of a real server wait for, held against the backends' own numbers", Minutes: 15, Root: true,
			Needs: slices.Concat(servers, []Need{{"psql", "postgresql"}, {"redis-server", "redis-server"}}),
			Run:   goTest("./internal/test/waits", "^TestWaits$/", "60m"), Select: "-run", Covers: slices.Concat([]string{"internal/diagnosis", "internal/hostproc", "internal/threaddump"}, rigFiles, []string{"internal/test/waits"}), Results: []string{"docs/results/waits.md"},
		},
		{
			Name: "lab", What: "the published experiments on real Tomcats, with k6 and Locust", Minutes: 20, Root: true, Needs: slices.Concat(servers, []Need{{"pip", "python3-pip"}}),
			Run: goTest("./internal/test/lab", "^TestLab$/", "60m"), Select: "-run", Covers: slices.Concat(judging, finding, []string{"internal/plan"}, rigFiles, []string{"internal/test/lab"}), Results: []string{"docs/results/lab.md"},
		},
		{
			Name: "junit", What: "the JUnit XML of tcpdiag run by the published schemas of Jenkins and Surefire", Minutes: 1,
			Needs: []Need{{"mvn", "maven"}, {"pip3", "python3-pip"}, {"xmllint", "libxml2-utils"}}, Run: goTest("./internal/test/junit", "^TestReaders$", "10m"), Covers: []string{"internal/render/runreport", "internal/test/junit"},
		},
		{
			Name: "run-cost", What: "what tcpdiag run costs a k6 test: ten alternated pairs with and without it", Minutes: 6, Root: true, Needs: servers,
			Run: goTest("./internal/test/lab", "^TestRunCosts$", "20m"), Covers: slices.Concat([]string{"internal/cli", "internal/loadtest"}, clients), Results: []string{"docs/results/run-cost.md"},
		},
		{
			Name: "studies", What: "the load of the five published studies, by k6 and Locust, as the command of tcpdiag run", Minutes: 10, Root: true, Needs: slices.Concat(servers, []Need{{"pip", "python3-pip"}}),
			Run: goTest("./internal/test/lab", "^TestStudies$/", "60m"), Select: "-run", Covers: slices.Concat([]string{"internal/loadtest", "internal/test/lab"}, clients), Results: []string{"docs/results/studies.md"},
		},
		{
			Name: "knee", What: "the knee that tcpdiag run states after one run, against a bisection with many, and the settings that it proposes applied", Minutes: 31, Root: true, Needs: servers,
			Run: goTest("./internal/test/knee", "^TestKnee$/", "60m"), Select: "-run", Covers: slices.Concat([]string{"internal/loadtest", "internal/plan", "internal/test/knee"}, clients), Results: []string{"docs/results/knee.md"},
		},
		{
			Name: "kernels", What: "packaged kernels from 5.10 to the newest, an arm64 one and a slow machine, all emulated", Minutes: 150, Root: true,
			Needs: []Need{{"qemu-system-x86_64", "qemu-system-x86"}, {"qemu-system-aarch64", "qemu-system-arm"}, {"busybox", "busybox-static"}, {"cpio", "cpio"}, {"xz", "xz-utils"}, {"depmod", "kmod"}, {"mke2fs", "e2fsprogs"}},
			Run:   []string{"go", "run", "./internal/test/kernels"}, Select: "-only", Covers: slices.Concat(judging, clients, []string{"internal/sockdiag", "internal/netns", "internal/test/kernels"}), Results: []string{"docs/results/kernels.md"},
		},
		{
			Name: "kernels-short", What: "the oldest and the newest of those kernels, with what they have and do", Minutes: 15, Root: true,
			Needs: []Need{{"qemu-system-x86_64", "qemu-system-x86"}, {"busybox", "busybox-static"}, {"cpio", "cpio"}, {"xz", "xz-utils"}, {"depmod", "kmod"}, {"mke2fs", "e2fsprogs"}},
			Run:   []string{"go", "run", "./internal/test/kernels", "-short"}, Covers: []string{"internal/sockdiag", "internal/netns", "internal/test/kernels"},
		},
	}
}

// Table is what CONTRIBUTING.md has of the proofs.
func Table() string {
	var b strings.Builder
	b.WriteString("| `make prove PROOF=` | what it shows | minutes | needs | writes |\n|---|---|---|---|---|\n")
	for _, p := range All() {
		var needs []string
		if p.Root {
			needs = append(needs, "root")
		}
		for _, n := range p.Needs {
			if !slices.Contains(needs, n.Package) {
				needs = append(needs, n.Package)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", p.Name, p.What, p.Minutes, strings.Join(needs, ", "), strings.Join(p.Results, ", "))
	}
	return b.String()
}
