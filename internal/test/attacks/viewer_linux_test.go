package attacks

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const nobody = "65534"

// viewer is as whom tcpdiag runs.
type viewer struct {
	name string
	same bool     // the user and group of the attacker, without any capability
	caps []string // the only ones of root's; nil: all of them
}

// viewers are full root, the node agent, and a sidecar.
func viewers(t *testing.T) []viewer {
	return []viewer{{name: "root"}, {name: "DaemonSet", caps: daemonSet(t)}, {name: "same ids", same: true}}
}

// daemonSet are the capabilities that the DaemonSet's manifest adds.
func daemonSet(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/kubernetes/daemonset/tcpdiag.yaml")
	require.NoError(t, err)
	_, added, found := strings.Cut(string(text), "\n              add:\n")
	require.True(t, found)
	added, _, _ = strings.Cut(added, "livenessProbe")
	var caps []string
	for _, m := range regexp.MustCompile(`(?m)^ +- ([A-Z_]+)$`).FindAllStringSubmatch(added, -1) {
		caps = append(caps, strings.ToLower(m[1]))
	}
	require.Contains(t, caps, "setuid")
	return caps
}

// line is the command line that runs a program as the viewer, in a group and in a
// network namespace.
func (v viewer) line(g *group, ns *nettest.NS, program string, args ...string) []string {
	line := []string{"nsenter", "--net=" + ns.Path(), "--", "setpriv", "--pdeathsig", "KILL", "--no-new-privs"}
	switch {
	case v.same:
		line = append(line, "--reuid", nobody, "--regid", nobody, "--clear-groups")
	case v.caps != nil:
		only := "-all,+" + strings.Join(v.caps, ",+")
		line = append(line, "--bounding-set="+only, "--inh-caps="+only)
	}
	return g.wrap(slices.Concat(line, []string{program}, args))
}

// targets are the flags that make it report a scene: a node agent is in a
// namespace of its own and looks into all of them.
func (v viewer) targets() []string {
	if v.caps != nil {
		return []string{"--all-namespaces", "--port", "18080", "--port", "18081"}
	}
	return []string{"--all"}
}
