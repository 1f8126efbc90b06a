package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
)

// judge names what the symptoms mean, by the catalogue.
type judge struct {
	s         *symptoms.Symptoms
	catalogue []causes.Cause
	numbers   string // see okNumbers
}

func newJudge(e symptoms.Evidence, all []causes.Cause, t reading.Thresholds) *judge {
	return &judge{s: symptoms.Of(e, t), catalogue: all}
}
