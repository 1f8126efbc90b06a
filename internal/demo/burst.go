package demo

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"
)

// BurstOptions describe the clients. The zero value of everything but Address
// and Clients is a client that connects, sends one GET / and waits for ever.
type BurstOptions struct {
	Address string // numeric host:port
	Clients int
	Rate    float64 // clients started in a second; 0 starts all at once
	Path    string  // with query; "" is /

	ConnectTimeout time.Duration // 0 leaves it to the kernel (127 s and more)
	RequestTimeout time.Duration // from the request's first byte to the answer's last; 0 waits for ever

	Requests int           // on each connection (keep-alive when not 1): 0 is 1, negative is until the run ends
	Think    time.Duration // pause between an answer and the next request

	Body       int64 // bytes of a POST's body; 0 sends a GET
	BodyRate   int64 // bytes in a second; 0 as fast as the server takes them
	ReadRate   int64 // bytes in a second; 0 as fast as they come
	HalfClose  bool  // shutdown(SHUT_WR) after the request
	HalfHeader bool  // stop in the middle of the header and wait
	// ResetAfter resets the connection (SO_LINGER 0) this long after the request
	// was sent; 0 never.
	ResetAfter time.Duration
	TLS        *tls.Config
}

// spareFiles is what a process needs in addition to its clients.
const spareFiles = 64

func (o BurstOptions) validate() error {
	if _, err := netip.ParseAddrPort(o.Address); err != nil {
		return fmt.Errorf("demo: burst: address %q: must be numeric host:port", o.Address)
	}
	if strings.ContainsAny(o.Path, " \t\r\n") || !strings.HasPrefix(o.Path+"/", "/") {
		return fmt.Errorf("demo: burst: path %q: must start with / and hold no blanks", o.Path)
	}
	if o.Clients < 1 {
		return fmt.Errorf("demo: burst: %d clients: must be at least 1", o.Clients)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"connect timeout", o.ConnectTimeout},
		{"request timeout", o.RequestTimeout},
		{"think time", o.Think},
		{"reset after", o.ResetAfter},
	} {
		if d.value < 0 {
			return fmt.Errorf("demo: burst: %s %s: must not be negative", d.name, d.value)
		}
	}
	if o.Rate < 0 || o.Body < 0 || o.BodyRate < 0 || o.ReadRate < 0 {
		return fmt.Errorf("demo: burst: rates and sizes must not be negative")
	}
	return nil
}

// roomFor says whether the process may open that many files.
func roomFor(files int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("demo: open files limit: %w", err)
	}
	if uint64(files+spareFiles) > limit.Cur {
		return fmt.Errorf("demo: %d connections need more open files than this process may have: %d (ulimit -n)", files, limit.Cur)
	}
	return nil
}

// Progress is the state of a burst while it runs.
type Progress struct {
	Started    int // clients that began to connect
	Connecting int // of them, waiting for the handshake
	Open       int // connected, as the client sees it
	Outcomes
}

// Load is a burst that can be watched while it runs.
type Load struct {
	o       BurstOptions
	request string

	mu  sync.Mutex
	now Progress
}

// NewLoad checks the options.
func NewLoad(o BurstOptions) (*Load, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := roomFor(o.Clients); err != nil {
		return nil, err
	}
	if o.Path == "" {
		o.Path = "/"
	}
	if o.Requests == 0 {
		o.Requests = 1
	}
	return &Load{o: o, request: head(o)}, nil
}

// Burst runs the clients until each has its outcome or ctx ends.
func Burst(ctx context.Context, o BurstOptions) (Outcomes, error) {
	l, err := NewLoad(o)
	if err != nil {
		return Outcomes{}, err
	}
	return l.Run(ctx), nil
}

// Run starts the clients and waits for all of them. Each has a socket of its
// own; when ctx ends they close theirs and count as unfinished.
func (l *Load) Run(ctx context.Context) Outcomes {
	var all sync.WaitGroup
	start := time.Now()
	for i := range l.o.Clients {
		if l.o.Rate > 0 {
			due := time.Duration(float64(i) / l.o.Rate * float64(time.Second))
			if !sleep(ctx, due-time.Since(start)) {
				break
			}
		}
		all.Go(func() { l.client(ctx) })
	}
	all.Wait()
	return l.Now().Outcomes
}

// Now is the present state of the burst.
func (l *Load) Now() Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.now
	p.Outcomes = l.now.clone()
	return p
}

func (l *Load) update(change func(*Progress)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.now)
}
