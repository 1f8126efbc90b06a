package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) keepAliveSteps(v model.Verdict) (do []model.Step, not string) {
	if connectionLimit(j.Now) != limitKnown {
		return j.unknownSteps(), ""
	}
	to, _ := j.connectionsWanted()
	raise := j.raiseConnections("Let more clients in: an idle connection costs a descriptor and a few KiB, no thread", to)
	do = append(do, j.endIdleSooner()...)
	not = "More threads: those there are have nothing to do."
	if slices.Contains(v.Chain, model.CauseMaxThreads) {
		not = "A larger acceptCount: more clients would wait behind idle ones."
	}
	return append(do, raise...), not
}

// endIdleSooner is there where a timeout may end idle connections sooner than today.
func (j *judge) endIdleSooner() []model.Step {
	c := j.Now.Connector
	in, s, text := c.KeepAlive(), keepAliveSetting(), "End idle connections sooner; clients connect more often then"
	if mostlySilent(j.Now) {
		in, s, text = c.ConnectionTimeout, connectionTimeoutSetting(), "End connections that send nothing sooner"
	}
	switch {
	case mostlyRecent(j.Now), in != nil && in.Value > 0 && in.Value <= shortTimeout:
		return nil
	case !mostlySilent(j.Now) && (in == nil || in.Uncertain):
		return nil // whether that timeout is in force is not known
	}
	step := s.changeTime(j, in, text, shortTimeout)
	if !mostlySilent(j.Now) && c.KeepAliveTimeout == nil { // that of connectionTimeout counts, which is another setting
		step.From, step.File = phrase.Seconds(in.Value)+" (unset: connectionTimeout's)", ""
	}
	return []model.Step{step}
}
