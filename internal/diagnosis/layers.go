package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

// The verdict on one listener is made in layers, each of which knows those
// below it and none above:
//
//	finder    what else there is to say
//	adviser   what to change                     sentence   the verdict in one
//	wording   the evidence as parts of sentences
//	ruling    status and causes
//	judge     the evidence, and which stages are full
type (
	ruling   struct{ *judge }
	wording  struct{ ruling }
	sentence struct{ wording }
	adviser  struct{ wording }
	finder   struct{ adviser }
)

func newFinder(e Evidence, t Thresholds) finder {
	return finder{adviser{wording{ruling{newJudge(e, t)}}}}
}

// verdict is what all of them say.
func (fd finder) verdict() model.Verdict {
	v := model.Verdict{Status: fd.status(), Chain: fd.chain()}
	v.Cause = fd.cause(v.Status)
	v.Summary = sentence{fd.wording}.summary(v)
	v.Findings = fd.findings(v)
	return v
}
