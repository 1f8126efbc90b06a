package agent

import (
	"crypto/sha256"
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// A password that was not seen before costs some 60 ms of CPU to compare
	// (bcrypt): the most that are compared at once, of all clients and of one address.
	comparesPerSecond    = 2
	comparesAtOnce       = 8
	comparesOfOneAddress = 4
	maxAddresses         = 1024
	maxPasswords         = 64
)

// guard runs in front of the toolkit's basic auth: guesses beyond a rate are
// answered without being compared. A password that was right once passes.
type guard struct {
	mu        sync.Mutex
	all       *rate.Limiter
	addresses map[string]*rate.Limiter
	right     map[[sha256.Size]byte]struct{}
}

func newGuard() *guard {
	return &guard{
		all:       rate.NewLimiter(comparesPerSecond, comparesAtOnce),
		addresses: map[string]*rate.Limiter{}, right: map[[sha256.Size]byte]struct{}{},
	}
}

// before is asked before the password is compared.
func (g *guard) before(compare http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.admits(r) {
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusTooManyRequests, "too many passwords at once\n")
			return
		}
		compare.ServeHTTP(w, r)
	})
}

// after sees only requests whose password was right.
func (g *guard) after(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key, ok := passwordOf(r); ok {
			g.mu.Lock()
			if len(g.right) >= maxPasswords {
				clear(g.right)
			}
			g.right[key] = struct{}{}
			g.mu.Unlock()
		}
		h.ServeHTTP(w, r)
	})
}

func (g *guard) admits(r *http.Request) bool {
	key, ok := passwordOf(r)
	if !ok {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, right := g.right[key]; right {
		return true
	}
	limiter := g.addresses[host]
	if limiter == nil {
		if len(g.addresses) >= maxAddresses {
			clear(g.addresses)
		}
		limiter = rate.NewLimiter(comparesPerSecond, comparesOfOneAddress)
		g.addresses[host] = limiter
	}
	return limiter.Allow() && g.all.Allow()
}

func passwordOf(r *http.Request) (key [sha256.Size]byte, ok bool) {
	user, password, ok := r.BasicAuth()
	return sha256.Sum256([]byte(user + "\x00" + password)), ok
}
