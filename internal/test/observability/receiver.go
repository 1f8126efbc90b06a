package observability

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Notification is one alert of a message that a receiver got.
type Notification struct {
	At          time.Time
	Receiver    string // pager or tickets
	Status      string // firing or resolved
	Labels      map[string]string
	Annotations map[string]string
}

// Receiver is a webhook that remembers what it got.
type Receiver struct {
	server *http.Server
	url    string
	tell   func(Notification)

	mu  sync.Mutex
	got []Notification
}

// StartReceiver listens on address; tell, if not nil, is called with each
// notification as it comes.
func StartReceiver(ctx context.Context, address string, tell func(Notification)) (*Receiver, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("observability: receiver: %w", err)
	}
	r := &Receiver{url: "http://" + l.Addr().String(), tell: tell}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

// URL is what the receivers' names are appended to.
func (r *Receiver) URL() string { return r.url }

// Stop ends it.
func (r *Receiver) Stop() { _ = r.server.Close() }

// Got are the notifications so far, in the order they came.
func (r *Receiver) Got() []Notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Notification(nil), r.got...)
}

// ServeHTTP takes a message of Alertmanager's webhook, version 4.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var message struct {
		Alerts []struct {
			Status      string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, 10<<20)).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range message.Alerts {
		n := Notification{
			At: time.Now(), Receiver: strings.Trim(request.URL.Path, "/"),
			Status: a.Status, Labels: a.Labels, Annotations: a.Annotations,
		}
		r.got = append(r.got, n)
		if r.tell != nil {
			r.tell(n)
		}
	}
}
