package diagnosis

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) poolSteps() []model.Step {
	w := &j.waits
	peer := peerName(w.peer)
	s := model.Step{
		Text:    phrase.Sprintf("Raise the pool if %s answers more at a time as fast", peer),
		Setting: "the pool of connections to " + peer, From: strconv.Itoa(w.peer.Connections),
	}
	if p := w.peer.Pool; p != nil {
		s.Setting, s.From, s.File = p.Setting, strconv.Itoa(p.Size.Value), foundIn(&p.Size)
	}
	if !w.virtual {
		s.To = strconv.Itoa(w.there + w.without())
	}
	return []model.Step{action(phrase.Sprintf("Shorten what is asked of %s: each connection is in use until its answer has come", peer)), s}
}
