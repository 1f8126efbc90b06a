package attacks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// TestFiles: each hostile process alone, for each viewer.
func TestFiles(t *testing.T) {
	expensive(t)
	program := build(t)
	header(t)
	all := large()
	maps.Copy(all, foreign())
	maps.Copy(all, changing())
	for _, v := range viewers(t) {
		for _, name := range sortedKeys(all) {
			attempt(t, v.name, name, func(t *testing.T) row { return run(t, v, program, all[name].seenBy(v)) })
		}
	}
}

// run lets an attacker attack, and says what came of it.
func run(t *testing.T, v viewer, program string, a attack) row {
	t.Helper()
	targets := v.targets()
	if a.omitted > 0 {
		targets = []string{"--all", "--max-listeners", "450"}
	}
	if a.elsewhere || a.omitted > 0 && v.caps != nil {
		targets = append(targets, "--all-namespaces")
	}
	s := newScene(t, v, program, targets...)
	home := s.pods
	if a.elsewhere {
		home = nettest.Namespace(t)
	}
	a.start(t, home, s.java)
	if a.omitted > 0 {
		return s.finish(t, s.untilOmitted(t, a.omitted))
	}
	return s.finish(t, s.until(t, a))
}

// untilOmitted waits until that many listeners are beyond --max-listeners, and the
// honest server's limit is known: it is among those that are not.
func (s *scene) untilOmitted(t *testing.T, n float64) string {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s.look(t)
		if omitted := s.metric(t, "tcpdiag_omitted_listeners"); omitted >= n && s.limits {
			return fmt.Sprintf("%.0f listeners beyond --max-listeners", omitted)
		}
	}
	require.Fail(t, "never omitted")
	return ""
}

// everything says that the attacks that take long are tried too.
func everything() bool { return proof.Full() }

// together are attacks that reach different parsers, and are cheap.
func together() map[string]attack {
	all := large()
	maps.Copy(all, foreign())
	few := map[string]attack{}
	for _, name := range []string{
		"YAML key x elements", "imports", "DOCTYPEs of 3 MB", "deflated nested jars", "a value that is none", "control characters",
		"import of root's", "catalina.config of root's", "configtree of proc", "server.xml is FUSE",
	} {
		few[name] = all[name]
	}
	return few
}

// TestLongTogether: one of each kind at the same time, for each viewer.
func TestLongTogether(t *testing.T) {
	nettest.Root(t)
	program := build(t)
	header(t)
	all := together()
	for _, v := range viewers(t) {
		attempt(t, v.name, "one of each kind", func(t *testing.T) row {
			targets, names := v.targets(), sortedKeys(all)
			for i := range names {
				if v.caps != nil {
					targets = append(targets, "--port", strconv.Itoa(hostilePort+10+i))
				}
			}
			s := newScene(t, v, program, targets...)
			for i, name := range names {
				a, port := all[name].seenBy(v), hostilePort+10+i
				a.part = part{From: port, To: port + 1, Threads: []string{fmt.Sprintf("http-nio-%d-e", port)}}
				a.start(t, s.pods, s.java)
			}
			for _, name := range names {
				s.until(t, all[name].seenBy(v))
			}
			return s.finish(t, fmt.Sprintf("what it must of each of %d", len(names)))
		})
	}
}

func expensive(t *testing.T) {
	t.Helper()
	nettest.Root(t)
	if !everything() {
		t.Skip("takes minutes: make prove PROOF=attacks")
	}
}

// sortedKeys are the names of attacks in order.
func sortedKeys[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }
