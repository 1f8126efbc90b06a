package agent

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// intakeRate is how many bytes a second are read of one client, intakeBurst how many at once:
	// a thousand scrapes. Without it 64 connections that send small requests
	// one behind the other, or frames of HTTP/2, would have the processor to themselves.
	intakeRate  = 128 << 10
	intakeBurst = 256 << 10
	// intakeLeast is what one read counts at least, handshakeCost what a TLS handshake
	// does besides its bytes: a signature is a millisecond's work.
	intakeLeast   = 64
	handshakeCost = 4 << 10
	// connectionCost is what a connection counts that is opened: of a client that has half of the
	// port's already 256 a second are taken, the others closed at once.
	connectionCost = 512
	// intakeFree is how much of a connection passes at once whatever its client's others have sent: a probe.
	intakeFree = 256
	// maxIntakeWait is how long a connection waits at most to be read; beyond it is closed.
	maxIntakeWait = 2 * time.Second
	maxIntakes    = 1024
)

// intake bounds how fast each client is read, over all its connections.
type intake struct {
	share *shares.Resource

	mu      sync.Mutex
	clients map[string]*rate.Limiter
	rest    *rate.Limiter // of the clients beyond maxIntakes, together
	swept   time.Time
}

func newIntake(share *shares.Resource) *intake {
	return &intake{share: share, clients: make(map[string]*rate.Limiter), rest: rate.NewLimiter(intakeRate, intakeBurst)}
}

// of is a client's own. One that has not been used lately is as a new one, and goes when others come.
func (i *intake) of(client string) *rate.Limiter {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.clients[client]; l != nil {
		return l
	}
	if now := time.Now(); len(i.clients) >= maxIntakes && now.Sub(i.swept) >= time.Second {
		i.swept = now
		maps.DeleteFunc(i.clients, func(_ string, l *rate.Limiter) bool { return l.Tokens() >= intakeBurst })
	}
	if len(i.clients) >= maxIntakes {
		return i.rest
	}
	l := rate.NewLimiter(intakeRate, intakeBurst)
	i.clients[client] = l
	return l
}

// wait keeps n bytes that were read of a client from being worked on until it is their time; false
// where the connection was closed meanwhile, or is to be.
func (i *intake) wait(l *rate.Limiter, client string, n int, closed <-chan struct{}) bool {
	r := l.ReserveN(time.Now(), min(n, intakeBurst))
	delay := r.Delay()
	if delay == 0 {
		return true
	}
	if delay > maxIntakeWait {
		r.Cancel()
		i.share.Refused(client)
		return false
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-closed:
		return false
	}
}
