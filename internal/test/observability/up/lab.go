package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/observability"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The Tomcat's limits: there is room for 20 + 5 + 1 = 26 clients.
const (
	threads        = 4
	maxConnections = 20
	acceptCount    = 5
)

// lab is everything that runs.
type lab struct {
	tomcatPort, actuatorPort, agentPort int
	prometheusAddress, managerAddress   string
	grafanaAddress, receiverAddress     string
	interval, lasts                     time.Duration
	messages                            string // file for the notifications

	dir        string
	grafana    bool
	prometheus string
	stops      []func() // in the order of the starts
}

func (l *lab) flags(f *flag.FlagSet) {
	f.IntVar(&l.tomcatPort, "tomcat-port", 8080, "port of the Tomcat")
	f.IntVar(&l.actuatorPort, "actuator-port", 8081, "port of its Actuator")
	f.IntVar(&l.agentPort, "agent-port", 10889, "port of tcpdiag's agent")
	f.StringVar(&l.prometheusAddress, "prometheus", "127.0.0.1:9090", "address of Prometheus")
	f.StringVar(&l.managerAddress, "alertmanager", "127.0.0.1:9093", "address of Alertmanager")
	f.StringVar(&l.grafanaAddress, "grafana", "127.0.0.1:3000", "address of Grafana, where it is installed")
	f.StringVar(&l.receiverAddress, "receiver", "127.0.0.1:9099", "address of the webhook that prints notifications")
	f.DurationVar(&l.interval, "interval", 5*time.Second, "between two scrapes, and between two evaluations of the rules")
	f.DurationVar(&l.lasts, "overload", 30*time.Second, "how long an overload lasts")
	f.StringVar(&l.messages, "messages", "", "file to write the notifications to at the end (JSON)")
}

// start starts everything, each part when what it needs is ready.
func (l *lab) start(ctx context.Context) error {
	if err := l.free(ctx); err != nil {
		return err
	}
	var err error
	if l.dir, err = os.MkdirTemp("", "tcpdiag-observability-"); err != nil {
		return err
	}
	l.later(func() { _ = os.RemoveAll(l.dir) })
	fmt.Println("building the sample server (Maven, the first time) and tcpdiag …")
	built, err := rig.Build(ctx, l.dir)
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, rig.Artifacts) error{l.startServer, l.startAgent, l.startAlerting, l.startPrometheus, l.startGrafana} {
		if err := step(ctx, built); err != nil {
			return err
		}
	}
	return nil
}

// free refuses to start next to something that has the addresses: the parts
// would wait for the wrong one.
func (l *lab) free(ctx context.Context) error {
	var lc net.ListenConfig
	for _, address := range []string{
		":" + strconv.Itoa(l.tomcatPort), ":" + strconv.Itoa(l.actuatorPort), "127.0.0.1:" + strconv.Itoa(l.agentPort),
		l.prometheusAddress, l.managerAddress, l.receiverAddress,
	} {
		s, err := lc.Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("%w (another address: -h)", err)
		}
		_ = s.Close()
	}
	return nil
}

func (l *lab) later(stop func()) { l.stops = append(l.stops, stop) }

// stop ends everything, the last first.
func (l *lab) stop() {
	for i := len(l.stops) - 1; i >= 0; i-- {
		l.stops[i]()
	}
}

func (l *lab) startServer(ctx context.Context, built rig.Artifacts) error {
	fmt.Println("starting Tomcat …")
	tomcat, err := rig.StartTomcat(ctx, rig.TomcatOptions{
		Artifacts: built, Port: l.tomcatPort, ManagementPort: l.actuatorPort,
		Limits: rig.Limits{Threads: threads, MinSpare: threads, MaxConnections: maxConnections, AcceptCount: acceptCount},
	})
	if err != nil {
		return err
	}
	l.later(tomcat.Stop)
	return nil
}

func (l *lab) startAgent(ctx context.Context, built rig.Artifacts) error {
	agent, err := built.StartAgent(ctx, l.agentPort, "--port", strconv.Itoa(l.tomcatPort))
	if err != nil {
		return err
	}
	l.later(func() { _, _ = agent.Stop() })
	return nil
}

func (l *lab) startAlerting(ctx context.Context, _ rig.Artifacts) error {
	fmt.Println("starting Prometheus and Alertmanager …")
	receiver, err := observability.StartReceiver(ctx, l.receiverAddress, announce)
	if err != nil {
		return err
	}
	l.later(receiver.Stop)
	l.later(func() { l.keep(receiver.Got()) })
	manager, err := observability.StartAlertmanager(ctx, observability.AlertmanagerOptions{
		Dir: l.dir, Address: l.managerAddress, Config: filepath.Join("deploy", "prometheus", "alertmanager.yml"),
		Receiver: receiver.URL(), GroupInterval: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	l.later(manager.Stop)
	return nil
}

func (l *lab) startPrometheus(ctx context.Context, _ rig.Artifacts) error {
	rules, err := filepath.Abs(filepath.Join("deploy", "prometheus"))
	if err != nil {
		return err
	}
	p, err := observability.StartPrometheus(ctx, observability.PrometheusOptions{
		Dir: l.dir, Address: l.prometheusAddress, Rules: rules, Alertmanager: l.managerAddress,
		EvaluationInterval: l.interval,
		Jobs:               []observability.Job{{Name: "tcpdiag", Target: "127.0.0.1:" + strconv.Itoa(l.agentPort), ScrapeInterval: l.interval}},
	})
	if err != nil {
		return err
	}
	l.prometheus = p.URL()
	l.later(p.Stop)
	return nil
}

func (l *lab) startGrafana(ctx context.Context, _ rig.Artifacts) error {
	if l.grafana = observability.Installed(observability.GrafanaNames()...); !l.grafana {
		return nil
	}
	fmt.Println("starting Grafana …")
	folder, err := filepath.Abs("dashboards")
	if err != nil {
		return err
	}
	g, err := observability.StartGrafana(ctx, observability.GrafanaOptions{
		Dir: l.dir, Address: l.grafanaAddress, Dashboards: folder, Prometheus: l.prometheus,
	})
	if err != nil {
		return err
	}
	l.later(g.Stop)
	return nil
}

func (l *lab) introduction() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
Tomcat        http://127.0.0.1:%d/hello?ms=1000   maxThreads %d, maxConnections %d, acceptCount %d
tcpdiag       http://127.0.0.1:%d/
Prometheus    http://%s/alerts
Alertmanager  http://%s/
`, l.tomcatPort, threads, maxConnections, acceptCount, l.agentPort, l.prometheusAddress, l.managerAddress)
	if l.grafana {
		fmt.Fprintf(&b, "Grafana       http://%s/d/tcpdiag-backlog\n", l.grafanaAddress)
	} else {
		fmt.Fprintf(&b, "Grafana       is not installed (no grafana-server); import dashboards/*.json into one\n")
	}
	fmt.Fprintf(&b, "\nEnter overloads the Tomcat for %v; what pages is printed here. Ctrl-C ends everything.\n\n", l.lasts)
	return b.String()
}

// overload sends more clients than there is room for, for a while. Those that
// are inside ask again and again; others come all the time and give up after 3 s.
func (l *lab) overload(ctx context.Context) error {
	const perSecond = 8
	fmt.Printf("%s  overload for %v\n", clock(), l.lasts)
	ctx, cancel := context.WithTimeout(ctx, l.lasts)
	defer cancel()
	address := "127.0.0.1:" + strconv.Itoa(l.tomcatPort)
	inside, err := demo.NewLoad(demo.BurstOptions{Address: address, Path: "/hello?ms=1000", Clients: maxConnections + acceptCount + 1, Requests: -1})
	if err != nil {
		return err
	}
	outside, err := demo.NewLoad(demo.BurstOptions{
		Address: address, Path: "/hello?ms=1000", Clients: 1 + int(perSecond*l.lasts.Seconds()), Rate: perSecond, ConnectTimeout: 3 * time.Second,
	})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { inside.Run(ctx); close(done) }()
	outcomes := outside.Run(ctx)
	<-done
	fmt.Printf("%s  the overload is over; of those who came: %s\n", clock(), outcomes)
	return nil
}

// keep writes what the receiver got.
func (l *lab) keep(got []observability.Notification) {
	if l.messages == "" {
		return
	}
	b, err := json.MarshalIndent(got, "", "  ")
	if err == nil {
		err = os.WriteFile(l.messages, b, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// announce prints a notification the way somebody would read it.
func announce(n observability.Notification) {
	fmt.Printf("%s  %s: %s %s\n", clock(), strings.ToUpper(n.Receiver), n.Status, n.Labels["alertname"])
	if n.Status == "resolved" {
		return
	}
	for _, name := range []string{"summary", "description", "runbook", "runbook_url"} {
		fmt.Printf("          %s\n", n.Annotations[name])
	}
}

func clock() string { return time.Now().Format("15:04:05") }
