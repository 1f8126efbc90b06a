package assemble

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// moment is a listener as one scan saw it.
type moment struct {
	at time.Time
	*model.Listener
}

// moments are the earlier scans of a listener that judging needs: the previous one, one
// about a scan interval old, and one far enough back for a trend.
type moments struct {
	last, before moment
	anchors      [2]moment
}

// anchorAge is how far apart the scans are that a trend is drawn through.
const anchorAge = 15 * time.Second

// push adds a scan. Scans that were brought forward because packets dropped
// replace last but not before, so that two scans stay apart by about apart.
func (l *moments) push(now moment, apart time.Duration) {
	if l.before.Listener == nil || now.at.Sub(l.last.at) >= apart/2 || l.last.at.Sub(l.before.at) >= apart {
		l.before = l.last
	}
	l.last = now
	if now.at.Sub(l.anchors[1].at) >= anchorAge {
		l.anchors[0], l.anchors[1] = l.anchors[1], now
	}
}

// past is the scan to compare with: the last one, unless that one was brought
// forward and is too close.
func (l *moments) past(now time.Time, apart time.Duration) moment {
	if l.before.Listener != nil && now.Sub(l.last.at) < apart/2 {
		return l.before
	}
	return l.last
}

// trend is the oldest scan that is kept, for the forecast.
func (l *moments) trend() moment {
	if l.anchors[0].Listener != nil {
		return l.anchors[0]
	}
	return l.anchors[1]
}
