package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/findings"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// findings lists what the evidence carries: the cause first, then the other
// full stages, what clients saw, and what else a reader should know.
func (j *judge) findings(v model.Verdict) []model.Finding {
	var out []model.Finding
	seen := map[string]bool{}
	add := func(f model.Finding) {
		if f.Code != "" && !seen[f.Code] {
			seen[f.Code] = true
			out = append(out, f)
		}
	}
	for _, c := range j.findingCauses(v) {
		add(model.Finding{Code: string(c), Severity: severity(v, c), Evidence: j.evidence(c, v), Advice: j.advice(c, v)})
	}
	if v.Cause == model.CauseNone && v.Status != model.StatusOK && !j.onlyStands(v) && !j.s.FailsUnseen() {
		add(model.Finding{Code: "limits_unknown", Severity: severity(v, v.Cause), Evidence: j.evidence(v.Cause, v), Advice: advice.Unknown(j.s)})
	}
	for _, f := range findings.OfClients(j.s) {
		add(f)
	}
	for _, f := range findings.OfStages(j.s, v, func(c model.Cause) string { return j.advice(c, v) }) {
		add(f)
	}
	for _, f := range findings.OfKernel(j.s) {
		add(f)
	}
	return out
}

// findingCauses are the causes worth a finding of their own: the verdict's, and what
// follows it in the chain. All of them mention the accept queue.
func (j *judge) findingCauses(v model.Verdict) []model.Cause {
	var out []model.Cause
	switch v.Cause {
	case model.CauseNone:
	case model.CauseJVMPause, model.CauseCPUThrottled, model.CauseCPUSaturated:
		// Stages fill behind a process that does not run; each on its own would
		// be advised to grow, without effect.
		return []model.Cause{v.Cause}
	default:
		out = append(out, v.Cause)
	}
	if !j.s.Now.Listening() { // its stages went with it: no numbers, and no limit to change
		return out
	}
	for _, c := range v.Chain {
		implied := c == model.CauseAcceptQueue || c == model.CauseMaxConnections && v.Cause == model.CauseKeepAliveIdle
		// All threads busy with nothing waiting is part of the chain, no problem of its own.
		idle := c == model.CauseMaxThreads && !j.s.ThreadsFull
		if !implied && !idle && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

func severity(v model.Verdict, c model.Cause) model.Severity {
	switch {
	case v.Status >= model.StatusLosing && c == v.Cause:
		return model.SeverityCritical
	default:
		return model.SeverityWarning
	}
}
