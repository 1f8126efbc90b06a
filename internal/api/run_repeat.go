package api

// RunFigures are what one of several runs of a test came to.
type RunFigures struct {
	Status             string   `json:"status"`
	Offered            *uint64  `json:"offered,omitempty"`
	Served             *uint64  `json:"served,omitempty"`
	TurnedAway         *uint64  `json:"turned_away,omitempty"`
	DroppedPackets     uint64   `json:"dropped_packets"`
	ServedPerSecond    *float64 `json:"served_per_second,omitempty"`
	KneePerSecond      *float64 `json:"knee_clients_per_second,omitempty"` // absent: not known, or not of this load
	FirstByteP50       *float64 `json:"first_byte_p50_seconds,omitempty"`
	FirstByteP99       *float64 `json:"first_byte_p99_seconds,omitempty"`
	HighestInside      *int     `json:"highest_clients_inside,omitempty"`
	HighestInService   *int     `json:"highest_in_service,omitempty"`
	HighestAcceptQueue int      `json:"highest_accept_queue"`
}

// Figures are those of a listener in one run of this many seconds.
func (l *RunListener) Figures(seconds float64) RunFigures {
	out := RunFigures{Status: l.Status, DroppedPackets: l.DroppedPackets}
	if c := l.Clients; c != nil {
		out.Offered, out.Served, out.TurnedAway = &c.Offered, &c.Served, &c.TurnedAway
		if seconds > 0 {
			out.ServedPerSecond = new(float64(c.Served) / seconds)
		}
	}
	if k := l.Knee; k != nil && k.ClientsPerSecond > 0 {
		out.KneePerSecond = &k.ClientsPerSecond
	}
	if y := l.FirstByte; y != nil {
		out.FirstByteP50, out.FirstByteP99 = y.P50Seconds, y.P99Seconds
	}
	for i := range l.Course.Points {
		p := &l.Course.Points[i]
		out.HighestAcceptQueue = max(out.HighestAcceptQueue, p.AcceptQueue)
		if p.Connections != nil {
			out.HighestInside = higher(out.HighestInside, *p.Connections+p.AcceptQueue)
		}
		if p.InService != nil {
			out.HighestInService = higher(out.HighestInService, *p.InService)
		}
	}
	return out
}

func higher(most *int, n int) *int {
	if most != nil && *most >= n {
		return most
	}
	return &n
}

// JoinRuns is the document of a test that was run several times: of the worst run, the latest
// of equals, with the figures of all of them.
func JoinRuns(runs []Run, worse func(a, b *Run) bool) Run {
	worst := 0
	for i := range runs {
		if !worse(&runs[worst], &runs[i]) {
			worst = i
		}
	}
	out := runs[worst]
	if len(runs) == 1 {
		return out
	}
	out.Repeated, out.Shown = len(runs), worst+1
	out.Listeners = append([]RunListener(nil), out.Listeners...)
	for i := range out.Listeners {
		l := &out.Listeners[i]
		for j := range runs {
			for k := range runs[j].Listeners {
				if same := &runs[j].Listeners[k]; same.Port == l.Port && same.Address == l.Address {
					l.Repeats = append(l.Repeats, same.Figures(runs[j].Seconds))
				}
			}
		}
	}
	return out
}
