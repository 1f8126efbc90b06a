package accounts

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// twins are two servers on one port (SO_REUSEPORT), each with limits and a queue of its own.
type twins struct {
	o                demo.ServerOptions
	listeners        []net.Listener
	accepted, served atomic.Int64
	running          sync.WaitGroup
}

func newTwins(t testing.TB, ns *nettest.NS, o demo.ServerOptions) *twins {
	tw := &twins{o: o}
	ns.Do(func() {
		for range 2 {
			l := nettest.Listen(t, nettest.ListenOptions{Address: o.Address, Backlog: o.AcceptCount, ReusePort: true})
			file := l.File(t)
			listener, err := net.FileListener(file)
			require.NoError(t, err)
			_ = file.Close()
			l.Close()
			tw.listeners = append(tw.listeners, listener)
		}
	})
	for _, l := range tw.listeners {
		tw.running.Go(func() { tw.serve(l) })
	}
	return tw
}

func (tw *twins) serve(l net.Listener) {
	slots, threads := make(chan struct{}, tw.o.MaxConnections), make(chan struct{}, tw.o.MaxThreads)
	for {
		slots <- struct{}{}
		c, err := l.Accept()
		if err != nil {
			return
		}
		tw.accepted.Add(1)
		tw.running.Go(func() {
			tw.answer(c, threads)
			<-slots
		})
	}
}

func (tw *twins) answer(c net.Conn, threads chan struct{}) {
	defer c.Close()
	var b [1024]byte
	if n, _ := c.Read(b[:]); n == 0 {
		return
	}
	threads <- struct{}{}
	defer func() { <-threads }()
	time.Sleep(tw.o.ServiceTime)
	if _, err := c.Write(response); err == nil {
		tw.served.Add(1)
	}
}

func (tw *twins) bounds() (accepted, served uint64) {
	queue := 2 * (tw.o.AcceptCount + runtime.NumCPU())
	return uint64(queue) + uint64(tw.accepted.Load()), uint64(queue+2*tw.o.MaxConnections) + uint64(tw.served.Load())
}

func (tw *twins) stop() {
	for _, l := range tw.listeners {
		_ = l.Close()
	}
	tw.running.Wait()
}
