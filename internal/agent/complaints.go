package agent

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// complaintsEvery is between two lines of the log about what net/http complains of.
const complaintsEvery = time.Minute

// complaints are net/http's: a line for each failed TLS handshake and each protocol error, so that whoever
// can reach the port writes the log. One in a while is passed on, with how many there were; a
// panic of the agent's own always is.
type complaints struct {
	log *slog.Logger
	now func() time.Time

	mu     sync.Mutex
	said   time.Time
	unsaid int
}

func newErrorLog(l *slog.Logger) *log.Logger {
	return log.New(&complaints{log: l, now: time.Now}, "", 0)
}

// Write implements io.Writer, once for each line.
func (c *complaints) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: panic serving") || strings.HasPrefix(text, "http2: panic serving") {
		c.log.Error("a request failed", "err", text)
		return len(line), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.unsaid++; !c.said.IsZero() && now.Sub(c.said) < complaintsEvery {
		return len(line), nil
	}
	c.log.Warn("a connection failed", "err", text[:min(len(text), 300)], "since_last_line", c.unsaid)
	c.said, c.unsaid = now, 0
	return len(line), nil
}
