package agent

import (
	"io"
	"net/http"
	"time"
)

// bodyAnswer refuses a request that comes with a body.
const bodyAnswer = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\nno body is expected\r\n"

// bodiless refuses at once what comes with a body: no request needs one, and net/http
// waits for the body, up to ReadTimeout, before it answers and before it takes the next
// request (response.finishRequest). The connection is closed at once for the same reason.
func bodiless(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil { // HTTP/2: only this stream ends
			reply(w, http.StatusRequestEntityTooLarge, "no body is expected\n")
			return
		}
		_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = io.WriteString(c, bodyAnswer)
		_ = c.Close()
	})
}
