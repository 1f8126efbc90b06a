package agent

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// A password that was not seen before costs some 60 ms of CPU to compare
	// (bcrypt): the most that are compared at once, of all clients and of one address.
	comparesPerSecond = 2
	comparesAtOnce    = 8
	comparesOfOne     = 4 // that may wait
	comparesWait      = 8 * time.Second
	guessesRemembered = 10 * time.Minute
	maxGuessers       = 1024
	maxPasswords      = 64
)

// guard runs in front of the toolkit's basic auth: guesses beyond a rate are
// answered without being compared. A password that was right once passes. A client that was not
// wrong lately waits for its turn before those that were get what is left, so that many that guess
// keep nobody else out.
type guard struct {
	all   *rate.Limiter
	turns *shares.Turns // of clients that were not wrong lately
	share *shares.Resource

	mu    sync.Mutex
	wrong map[string]time.Time // the client's latest wrong password
	right map[[sha256.Size]byte]struct{}
}

func newGuard(l *shares.Ledger) *guard {
	share := l.Resource("passwords")
	return &guard{
		all: rate.NewLimiter(comparesPerSecond, comparesAtOnce), turns: shares.NewTurns(1, comparesOfOne, share), share: share,
		wrong: map[string]time.Time{}, right: map[[sha256.Size]byte]struct{}{},
	}
}

// before is asked before the password is compared.
func (g *guard) before(compare http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, given := passwordOf(r)
		if !given || g.isRight(key) {
			compare.ServeHTTP(w, r)
			return
		}
		client := shares.Client(r.RemoteAddr)
		if !g.admits(r.Context(), client) {
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusTooManyRequests, "too many passwords at once\n")
			return
		}
		compare.ServeHTTP(w, r)
		if !g.isRight(key) {
			g.guessed(client)
		}
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

func (g *guard) isRight(key [sha256.Size]byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, right := g.right[key]
	return right
}

// admits waits until a client's password may be compared.
func (g *guard) admits(ctx context.Context, client string) bool {
	g.mu.Lock()
	at, wrong := g.wrong[client]
	g.mu.Unlock()
	if wrong && time.Since(at) < guessesRemembered {
		if !g.all.Allow() {
			g.share.Refused(client)
			return false
		}
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, comparesWait)
	defer cancel()
	if !g.turns.Take(ctx, client) {
		return false
	}
	defer g.turns.Leave()
	return g.all.Wait(ctx) == nil
}

// guessed remembers who was wrong.
func (g *guard) guessed(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.wrong) >= maxGuessers {
		maps.DeleteFunc(g.wrong, func(_ string, at time.Time) bool { return time.Since(at) >= guessesRemembered/10 })
	}
	if len(g.wrong) >= maxGuessers {
		clear(g.wrong)
	}
	g.wrong[client] = time.Now()
}

func passwordOf(r *http.Request) (key [sha256.Size]byte, ok bool) {
	user, password, ok := r.BasicAuth()
	return sha256.Sum256([]byte(user + "\x00" + password)), ok
}
