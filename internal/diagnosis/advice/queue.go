package advice

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// QueueWanted is a longer accept queue, and what it is enough for.
func QueueWanted(s *symptoms.Symptoms) (to int, holds string) {
	to, holds = queueNow(s)
	if steady := Steady(s, reading.StageAcceptQueue, s.Now.AcceptQueue.Limit, to); steady > to {
		return steady, "The queue then holds the largest burst since the trouble began while it is accepted."
	}
	return to, holds
}

// queueNow is the same for the latest burst.
func queueNow(s *symptoms.Symptoms) (to int, holds string) {
	q := s.Now.AcceptQueue
	dropped, burst := s.Overflowed(), "the burst"
	if b := s.Losses().Burst; b > 0 && b < dropped {
		dropped, burst = b, fmt.Sprintf("a burst like the largest, of which a second dropped %s,", phrase.Count(b, "packet"))
	}
	if clients, known := s.WithoutRoom(); known && clients < dropped {
		dropped, burst = clients, fmt.Sprintf("the %s for which it had no place", words.OrMore(s, clients))
	}
	to, holds = Spare(q.Capacity()+int(dropped)), "The queue then holds "+burst+" while it is accepted; the clients in it wait instead of retrying after 1 s."
	if most := max(s.T.QueueMost, RoundUp(2*q.Capacity())); to > most {
		to, holds = most, fmt.Sprintf("The %s are more than one burst, the same clients among them again and again: if that queue overflows too, look for what keeps %s from accepting.", phrase.Count(dropped, "dropped packet"), reading.ServerName(s.Now))
	}
	if step := AtMost(q.Limit); to > step {
		to = step
		if step < q.Capacity()+int(dropped) {
			holds = fmt.Sprintf("A first step: the %s may be the same clients again and again.", phrase.Count(dropped, "dropped packet"))
		}
	}
	return to, holds
}
