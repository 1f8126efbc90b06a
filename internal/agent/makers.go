package agent

import (
	"bytes"
	"net/http"
	"sync"
	"time"
)

const (
	// maxScrapes is how many answers are made at once: more would keep samples
	// from being taken in time. Others wait their turn.
	maxScrapes = 2
	// maxTurnWait is how long they do.
	maxTurnWait = 5 * time.Second
	// maxUnread is how many bytes of answers may wait for clients to read them.
	maxUnread = 16 << 20
	// maxReading is how long a client may take to read one.
	maxReading = 10 * time.Second
)

// makers make answers, a few at once and in the order of the requests, in
// memory: who reads slowly keeps nobody from his turn.
type makers struct {
	making chan struct{}
	unread outbox
}

func newMakers() *makers { return &makers{making: make(chan struct{}, maxScrapes)} }

func (m *makers) serve(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		patience := time.NewTimer(maxTurnWait)
		defer patience.Stop()
		select {
		case m.making <- struct{}{}:
		case <-r.Context().Done():
			return
		case <-patience.C:
			w.Header().Set("Retry-After", "1")
			reply(w, http.StatusServiceUnavailable, "too many requests wait\n")
			return
		}
		a := m.make(h, w, r)
		m.unread.deliver(w, a)
	})
}

func (m *makers) make(h http.Handler, w http.ResponseWriter, r *http.Request) *answer {
	defer func() { <-m.making }()
	a := &answer{header: w.Header(), code: http.StatusOK}
	h.ServeHTTP(a, r)
	return a
}

// answer is a response in memory.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
	expire func() // ends the writing
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// outbox bounds the answers that clients have not read: for a new one the
// oldest is given up.
type outbox struct {
	mu    sync.Mutex
	bytes int
	queue []*answer // the oldest first
}

func (o *outbox) deliver(w http.ResponseWriter, a *answer) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(maxReading))
	a.expire = func() { _ = control.SetWriteDeadline(time.Now().Add(-time.Second)) }
	o.put(a)
	defer o.take(a)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes())
	_ = control.Flush() // what is in the server's own buffer waits here too
}

func (o *outbox) put(a *answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes+a.body.Len() > maxUnread && len(o.queue) > 0 {
		o.queue[0].expire()
		o.remove(0)
	}
	o.queue, o.bytes = append(o.queue, a), o.bytes+a.body.Len()
}

func (o *outbox) take(a *answer) {
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
