// Command shop is a process with listeners that have Tomcat's limits, and with the faults that its flags give it: for
// the alerts that a JVM is not needed for. Each argument is a listener: port, connections, threads, acceptCount, and
// "stuck" for one that accepts nobody. It ends with its standard input.
//
//	shop -files 40 8411,100,100,5 8412,20,4,5,stuck
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

const (
	floodPause = 500 * time.Millisecond
	floodSYNs  = 200 // each time: more than the backlog has room for
	backend    = "127.0.0.1:9000"
)

func main() {
	files := flag.Uint64("files", 0, "open files that the process may have")
	alone := flag.Bool("alone", false, "the network namespace is the process's own: its loopback is brought up")
	sysctls := flag.String("sysctl", "", "parameters of that namespace, name=value;…")
	outgoing := flag.Int("outgoing", 0, "connections to a backend of its own")
	flood := flag.Int("flood", 0, "port to which SYNs come of clients that never answer")
	flag.Parse()
	ctx, stop := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); stop() }()
	all, ctx := errgroup.WithContext(ctx)
	must(prepare(ctx, *alone, *sysctls, *files))
	for _, listener := range flag.Args() {
		must(serve(ctx, all, listener))
	}
	if *outgoing > 0 {
		must(connect(ctx, all, *outgoing))
	}
	if *flood > 0 {
		all.Go(func() error { return flooded(ctx, uint16(*flood)) }) //nolint:gosec // a port
	}
	fmt.Println("ready")
	if err := all.Wait(); ctx.Err() == nil {
		must(err)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

func prepare(ctx context.Context, alone bool, sysctls string, files uint64) error {
	if alone {
		if err := proctest.LoopbackUp(); err != nil {
			return err
		}
		// The answers to addresses that nobody has leave, and are lost.
		if err := exec.CommandContext(ctx, "ip", "route", "add", "198.18.0.0/15", "dev", "lo").Run(); err != nil {
			return err
		}
	}
	for pair := range strings.SplitSeq(sysctls, ";") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			if err := os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0o600); err != nil {
				return err
			}
		}
	}
	if files > 0 {
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files})
	}
	return nil
}

// serve opens a listener, and serves there unless it is stuck.
func serve(ctx context.Context, all *errgroup.Group, listener string) error {
	parts := strings.Split(listener, ",")
	if len(parts) < 4 {
		return fmt.Errorf("%q: port,connections,threads,acceptCount", listener)
	}
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(parts[i]); err != nil {
			return err
		}
	}
	server, err := demo.Listen(ctx, demo.ServerOptions{
		Address: fmt.Sprintf("127.0.0.1:%d", n[0]), MaxConnections: n[1], MaxThreads: n[2], AcceptCount: n[3], KeepAlive: time.Hour,
	})
	if err != nil {
		return err
	}
	all.Go(func() error {
		if len(parts) > 4 {
			<-ctx.Done()
		}
		return server.Serve(ctx)
	})
	return nil
}

// connect holds connections to a backend, which is of the same process.
func connect(ctx context.Context, all *errgroup.Group, n int) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", backend)
	if err != nil {
		return err
	}
	var ends []io.Closer
	var d net.Dialer
	for range n {
		c, err := d.DialContext(ctx, "tcp", backend)
		if err != nil {
			return err
		}
		peer, err := l.Accept()
		if err != nil {
			return err
		}
		ends = append(ends, c, peer)
	}
	all.Go(func() error {
		<-ctx.Done()
		for _, c := range append(ends, l) {
			_ = c.Close()
		}
		return nil
	})
	return nil
}

// flooded sends SYNs from addresses that never answer.
func flooded(ctx context.Context, port uint16) error {
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
	for i := 0; ctx.Err() == nil; i++ {
		if err := nettest.SYNs(to, byte(1+i%250), floodSYNs); err != nil {
			return err
		}
		time.Sleep(floodPause)
	}
	return nil
}
