package web

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// outcomes are the attempts to connect that were decided lately, by how they
// ended; nothing where handshakes are not followed. The addresses that they came
// from are personal data, and stay off the page.
func outcomes(l *model.Listener) (heading string, parts []part) {
	if l.Losses == nil || l.Losses.Clients == nil {
		return "", nil
	}
	c := l.Losses.Clients
	total := 0
	add := func(n uint64, name, class string) {
		parts = append(parts, part{Name: name, Class: class, N: int(n)})
		total += int(n)
	}
	for o := range model.NumClientOutcomes {
		add(c.Outcomes[o], strings.ReplaceAll(o.String(), "_", " "), outcomeClass(o))
	}
	add(c.Untracked, "not followed", "unclassified")
	add(uint64(c.Waiting+c.Stalling), "still trying", "closed")
	return "Attempts to connect in " + phrase.Seconds(c.Observed) + ": " + phrase.Number(total), placed(parts, total)
}

// outcomeClass: green got in, orange late, red not at all.
func outcomeClass(o model.ClientOutcome) string {
	switch o {
	case model.ClientConnected:
		return "service"
	case model.ClientDelayed:
		return "waiting"
	case model.ClientHalfOpen:
		return "idle"
	}
	return "queued"
}
