package attacks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// play never ends but with an error.
func (p *part) play() error {
	if p.Control {
		return tick()
	}
	if p.Clients > 0 {
		return p.burst()
	}
	for _, name := range p.Threads {
		nameThread(name)
	}
	for i := range p.NumberedOf {
		nameThread("http-nio-" + strconv.Itoa(p.From+i) + "-e")
	}
	if p.Comm != "" {
		if err := os.WriteFile("/proc/self/comm", []byte(p.Comm), 0o600); err != nil {
			return err
		}
	}
	for port := p.From; port < p.To; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(p.Host, "127.0.0.1"), strconv.Itoa(port)))
		if err != nil {
			return err
		}
		if p.Accept {
			go p.serve(l)
		}
		if p.Full {
			if err := p.fill(l.(*net.TCPListener)); err != nil {
				return err
			}
		}
	}
	if p.Mapped != "" {
		if _, err := proctest.PlayMapped(p.Mapped, fmt.Sprintf("http-nio-%d-e", p.From)); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	if p.Flip != "" {
		p.flip()
	}
	if p.PerSecond > 0 {
		return p.listenOften()
	}
	if len(p.Spawn) > 0 {
		return p.churn()
	}
	select {}
}

func (p *part) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { // and is not closed
			_, _ = io.WriteString(c, p.Say)
			_, _ = io.Copy(p.ear(), c)
		}()
	}
}

// patience is that of burst's clients: the server answers every two seconds, and never at the
// moment at which they give up.
const patience = 11500 * time.Millisecond

// burst prints how many clients got no answer.
func (p *part) burst() error {
	o, err := demo.Burst(context.Background(), demo.BurstOptions{
		Address: fmt.Sprintf("127.0.0.1:%d", p.From), Path: "/hello?ms=2000", Clients: p.Clients, ConnectTimeout: patience, RequestTimeout: patience,
	})
	if err != nil {
		return err
	}
	fmt.Println(o.Lost())
	os.Exit(0)
	return nil
}

// fill gives a listener a queue of one connection, and comes with four again and again.
func (p *part) fill(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	if err := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 1) }); err != nil {
		return err
	}
	if p.Every > 0 {
		go p.overload(l)
		return err
	}
	for range 4 {
		go func() {
			for {
				if c, err := net.DialTimeout("tcp", l.Addr().String(), 4*time.Second); err == nil {
					time.Sleep(time.Minute)
					_ = c.Close()
				}
			}
		}()
	}
	return err
}

// overload has a server stand still for some seconds, again and again: of its twelve clients ten find its queue full. Two come before them: of an
// ACK that finds it full its socket counts two drops.
func (p *part) overload(l *net.TCPListener) {
	for time.Sleep(10 * time.Second); ; time.Sleep(p.Every) {
		var clients sync.WaitGroup
		for n := range 12 {
			clients.Go(func() {
				if c, err := net.DialTimeout("tcp", l.Addr().String(), 4*time.Second); err == nil {
					time.Sleep(4 * time.Second)
					_ = c.Close()
				}
			})
			if n == 1 {
				time.Sleep(200 * time.Millisecond)
			}
		}
		clients.Wait()
		_ = l.SetDeadline(time.Now().Add(100 * time.Millisecond))
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_ = c.Close()
		}
		_, _ = fmt.Fprintln(p.ear(), "in trouble")
	}
}

// ear takes what a connection sends.
func (p *part) ear() io.Writer {
	if p.Heard == "" {
		return io.Discard
	}
	f, err := os.OpenFile(p.Heard, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return io.Discard
	}
	return f
}

// flip changes its own command line in place, as setproctitle(3) does: os.Args are
// the very bytes that the kernel shows.
func (p *part) flip() {
	for _, arg := range os.Args {
		if !strings.HasPrefix(arg, p.Flip) {
			continue
		}
		text := unsafe.Slice(unsafe.StringData(arg), len(arg))
		for {
			for i := len(p.Flip); i < len(text); i++ {
				text[i] ^= 'x' ^ '4'
			}
			time.Sleep(time.Microsecond)
		}
	}
}

// nameThread makes a thread look like one of a Tomcat's.
func nameThread(name string) {
	named := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if err := os.WriteFile("/proc/thread-self/comm", []byte(name), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		close(named)
		select {}
	}()
	<-named
}

// listenOften opens listeners at a rate, each on an address on which none was before, and
// closes each after a second.
func (p *part) listenOften() error {
	var alive []net.Listener
	tick := time.Tick(time.Second / time.Duration(p.PerSecond))
	for n := 1; ; n++ {
		<-tick
		address := fmt.Sprintf("127.%d.%d.%d:%d", 1+n>>16&0x7f, n>>8&0xff, n&0xff, 20_000+n%20_000)
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		if alive = append(alive, l); len(alive) > p.PerSecond {
			_ = alive[0].Close()
			alive = alive[1:]
		}
	}
}

// churn starts processes that look like servers and ends them, six at a time.
func (p *part) churn() error {
	var alive []*exec.Cmd
	for port := p.To; ; port++ {
		if port == p.To+200 {
			port = p.To
		}
		child := part{From: port, To: port + 1, Accept: p.SpawnSilent, Threads: []string{"http-nio-" + strconv.Itoa(port) + "-e"}}
		var args []string
		for _, arg := range p.Spawn {
			args = append(args, strings.ReplaceAll(arg, "PORT", strconv.Itoa(port)))
		}
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.Args[0], cmd.Env = "java", []string{child.variable()}
		cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		alive = append(alive, cmd)
		time.Sleep(cmp.Or(p.Every, 50*time.Millisecond))
		if len(alive) > 6 {
			_, _ = alive[0].Process.Kill(), alive[0].Wait()
			alive = alive[1:]
		}
	}
}
