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
	// intakeOfAll is how many bytes a second are read of all clients together, intakeOfAllBurst how many at once, but for the little
	// that each has besides: many addresses would have the processor to themselves, too. That little is two scrapes by TLS a second, or a page.
	intakeOfAll      = 512 << 10
	intakeOfAllBurst = 512 << 10
	littleRate       = 16 << 10
	littleBurst      = 32 << 10
	// maxIntakeWait is how long a connection waits at most to be read; beyond it is closed.
	maxIntakeWait = 2 * time.Second
	maxIntakes    = 1024
)

// intake bounds how fast clients are read: each over all its connections, and all of them.
type intake struct {
	share *shares.Resource
	all   *rate.Limiter

	mu      sync.Mutex
	clients map[string]*portion
	rest    *portion // of the clients beyond maxIntakes, together
	swept   time.Time
}

// portion is a client's: the whole, and the little for which it waits for nobody else.
type portion struct{ whole, little *rate.Limiter }

func newIntake(share *shares.Resource) *intake {
	return &intake{share: share, all: rate.NewLimiter(intakeOfAll, intakeOfAllBurst), clients: make(map[string]*portion), rest: newPortion()}
}

func newPortion() *portion {
	return &portion{rate.NewLimiter(intakeRate, intakeBurst), rate.NewLimiter(littleRate, littleBurst)}
}

// of is a client's own. One that has not been used lately is as a new one, and goes when others come.
func (i *intake) of(client string) *portion {
	i.mu.Lock()
	defer i.mu.Unlock()
	if p := i.clients[client]; p != nil {
		return p
	}
	if now := time.Now(); len(i.clients) >= maxIntakes && now.Sub(i.swept) >= time.Second {
		i.swept = now
		maps.DeleteFunc(i.clients, func(_ string, p *portion) bool {
			return p.whole.Tokens() >= intakeBurst && p.little.Tokens() >= littleBurst
		})
	}
	if len(i.clients) >= maxIntakes {
		return i.rest
	}
	p := newPortion()
	i.clients[client] = p
	return p
}

// reserve has both limiters of who has had more than a little of late.
func (i *intake) reserve(p *portion, n int) (delay time.Duration, cancel func()) {
	now := time.Now()
	whole := p.whole.ReserveN(now, n)
	if p.little.AllowN(now, n) {
		return whole.DelayFrom(now), whole.Cancel
	}
	all := i.all.ReserveN(now, n)
	return max(whole.DelayFrom(now), all.DelayFrom(now)), func() { whole.Cancel(); all.Cancel() }
}

// wait keeps n bytes that were read of a client from being worked on until it is their time; false
// where the connection was closed meanwhile, or is to be.
func (i *intake) wait(p *portion, client string, n int, closed <-chan struct{}) bool {
	delay, cancel := i.reserve(p, min(n, intakeBurst))
	if delay == 0 {
		return true
	}
	if delay > maxIntakeWait {
		cancel()
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
