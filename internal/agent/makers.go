package agent

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// maxScrapes is how many answers are made at once: more would keep samples
	// from being taken in time. Others wait their turn.
	maxScrapes = 2
	// maxWaiting is how many of one client do: of its requests, and of the pages that it has open.
	maxWaiting = 32 + maxStreams
	// maxTurnWait is how long they do.
	maxTurnWait = 5 * time.Second
	// maxUnread is how many bytes of answers may wait for clients to read them.
	maxUnread = 16 << 20
)

// makers make answers, a few at once and in turns by client, in memory: who asks most or
// reads slowly keeps nobody from his turn.
type makers struct {
	turns  *shares.Turns
	unread outbox
	cache  cache
}

func newMakers(l *shares.Ledger) *makers {
	return &makers{
		turns:  shares.NewTurns(maxScrapes, maxWaiting, l.Resource("turns")),
		unread: outbox{share: l.Resource("answers")},
		cache:  cache{now: time.Now, answers: make(map[string]*cachedAnswer)},
	}
}

func (m *makers) serve(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.taking(w, r, func() *answer {
			a := &answer{header: make(http.Header), code: http.StatusOK}
			h.ServeHTTP(a, r)
			return a
		})
	})
}

// once makes what h does once of each snapshot, for all who ask the same question. A question that is "" is
// one of many: its answer is made for each.
func (m *makers) once(snapshot func() *model.Snapshot, question func(*http.Request, *model.Snapshot) string, h http.Handler) http.Handler {
	each := m.serve(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of := snapshot()
		q := question(r, of)
		if q == "" || of == nil {
			each.ServeHTTP(w, r)
			return
		}
		if a := m.cache.fresh(q, of); a != nil {
			m.unread.deliver(w, r, a)
			return
		}
		m.taking(w, r, func() *answer { return m.cache.make(q, of, h, r) })
	})
}

// taking has an answer made in its client's turn.
func (m *makers) taking(w http.ResponseWriter, r *http.Request, make func() *answer) {
	leave, ok := m.turn(r)
	if !ok {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		reply(w, http.StatusServiceUnavailable, "too many requests wait\n")
		return
	}
	m.unread.deliver(w, r, inTurn(leave, make))
}

func inTurn(leave func(), make func() *answer) *answer {
	defer leave()
	return make()
}

// turn waits for the turn of a request's client. It is also that in which an open page is drawn.
func (m *makers) turn(r *http.Request) (leave func(), ok bool) {
	patience, cancel := context.WithTimeout(r.Context(), maxTurnWait)
	defer cancel()
	return m.turns.Leave, m.turns.Take(patience, shares.Client(r.RemoteAddr))
}

// answer is a response in memory, which is not changed once it is made.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// outbox bounds the answers that clients have not read: for a new one the
// oldest of the client that has most is given up.
type outbox struct {
	share *shares.Resource

	mu    sync.Mutex
	bytes int
	queue []*delivery // the oldest first
}

// delivery is an answer on its way to a client.
type delivery struct {
	*answer
	client string
	expire func() // ends the writing
}

func (o *outbox) deliver(w http.ResponseWriter, r *http.Request, a *answer) {
	out := newPaced(w)
	d := &delivery{a, shares.Client(r.RemoteAddr), out.giveUp}
	o.put(d)
	defer o.take(d)
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	w.WriteHeader(a.code)
	_, _ = out.Write(a.body.Bytes())
}

func (o *outbox) put(a *delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes+a.body.Len() > maxUnread && len(o.queue) > 0 {
		i := o.largest(a)
		o.queue[i].expire()
		o.share.Evicted(o.queue[i].client)
		o.remove(i)
	}
	o.queue, o.bytes = append(o.queue, a), o.bytes+a.body.Len()
}

// largest is the oldest answer of the client that has most bytes waiting, with the new one.
func (o *outbox) largest(a *delivery) (at int) {
	bytes := map[string]int{a.client: a.body.Len()}
	for _, other := range o.queue {
		bytes[other.client] += other.body.Len()
	}
	for i, other := range o.queue {
		if bytes[other.client] > bytes[o.queue[at].client] {
			at = i
		}
	}
	return at
}

func (o *outbox) take(a *delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, other := range o.queue {
		if other == a {
			o.remove(i)
			return
		}
	}
}

func (o *outbox) remove(i int) {
	o.bytes -= o.queue[i].body.Len()
	o.queue = append(o.queue[:i:i], o.queue[i+1:]...)
}
