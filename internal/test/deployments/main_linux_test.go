package deployments

import (
	"slices"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// deployment is a case: one that is data, or a story.
type deployment struct {
	name string
	run  func(*rig.Case)
}

// data are those that read as one.
func data(all ...rig.Overload) (list []deployment) {
	for _, o := range all {
		list = append(list, deployment{o.Name, o.Run})
	}
	return list
}

func cases() []deployment {
	return slices.Concat(inCode(), protocols(), around(), others(), more(), webSockets(), starved(), shares(), outgoing(), tried(), unusual(), lies(), javas(), inherited(), claims(), owners(), front(), hosts(), kinds(), virtual(), unread(), forks())
}

const deploymentsHead = `# Unusual deployments

Written by ` + "`make prove PROOF=deployments`" + `: each is a real server that is really overloaded, or is
healthy and looks overloaded; the truth is what Tomcat's own MBeans said at that moment.

| deployment | truth | tcpdiag says | so it is |
|---|---|---|---|
`

func TestDeployment(t *testing.T) {
	rig.Cases(t, "docs/results/deployments.md", deploymentsHead, cases(), func(d deployment) (string, func(*rig.Case)) { return d.name, d.run })
}
