package agent

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// maxStreams is how many open pages are kept current.
const maxStreams = 64

// streams serves what lasts. It has a bound of its own: a connection that has a place in
// it no longer counts among those of the port, and ends with it. Over HTTP/2 it has
// others' requests, too, and counts.
type streams struct{ places *shares.Places }

func (s streams) serve(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(r.Context())
		defer end()
		conn := boundedBy(r)
		place := s.places.Take(shares.Client(r.RemoteAddr), func() {
			end()
			if conn != nil && r.ProtoMajor == 1 { // it may be waiting for its client to read
				_ = conn.shut()
			}
		})
		if place == nil {
			w.Header().Set("Retry-After", "10")
			reply(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open and updated: close one, or reload this one by hand\n", maxStreams))
			return
		}
		defer place.Leave()
		if conn != nil && r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
			conn.apart()
		}
		h(w, r.WithContext(ctx))
	}
}
