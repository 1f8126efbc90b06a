package threaddump

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// each is how many requests each kind of JVM gets.
const each = 200

// A thousand requests to JVMs that a signal would end or that cannot answer: none
// ends, and each refusal has its reason.
func TestAThousandRequests(t *testing.T) {
	proof.Skip(t)
	classes := needJDK(t)
	reasons := make(map[string]int)
	count := func(kind string, r *Refusal) {
		require.NotEmpty(t, r.Why)
		reasons[fmt.Sprintf("%s: %s (signalled %t)", kind, regexp.MustCompile(`\d+`).ReplaceAllString(r.Why, "N"), r.Signalled)]++
	}

	for name, options := range map[string][]string{
		"-Xrs": {"-Xrs"}, "-Xrs, not to be asked": {"-Xrs", "-XX:+DisableAttachMechanism"}, "-Xrs, without hsperfdata": {"-Xrs", "-XX:+DisableAttachMechanism", "-XX:-UsePerfData"},
	} {
		v := start(t, "3", options...)
		for range each / 2 {
			if len(options) == 1 {
				_, err := v.asker().Ask(t.Context(), v.key())
				require.NoError(t, err)
				reasons[name+": answered"]++
				continue
			}
			count(name, v.refused(v.asker()))
		}
		v.lives()
	}

	stopped := start(t, "3")
	for range each {
		require.NoError(t, stopped.Process.Signal(syscall.SIGSTOP))
		require.Eventually(t, func() bool { p, err := stopped.proc.Process(stopped.Process.Pid); return err == nil && p.Stopped() }, time.Minute, time.Millisecond)
		count("stopped", stopped.refused(stopped.asker()))
		require.NoError(t, stopped.Process.Signal(syscall.SIGCONT))
	}
	stopped.lives()

	if os.Geteuid() == 0 {
		other := startAs(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "3")
		for range each {
			count("another user's", other.refused(other.asker()))
		}
		other.lives()
	}

	for asked := 0; asked < 2*each; {
		v := begin(t, nil, "-cp", classes, "Waiting", "3", "5")
		for range 8 {
			time.Sleep(rand.N(60 * time.Millisecond))
			stacks, err := v.asker().Ask(t.Context(), v.key())
			if asked++; stacks != nil {
				reasons["starting: answered"]++
				continue
			}
			var r *Refusal
			require.ErrorAs(t, err, &r)
			count("starting", r)
		}
		v.up()
		v.lives()
	}
	for _, line := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%5d  %s", reasons[line], line)
	}
}

// How long a JVM of 1,000 threads stands still for one thread dump, by its own log.
func TestStandstill(t *testing.T) {
	proof.Skip(t)
	classes := needJDK(t)
	for _, depth := range []string{"10", "60"} {
		log := t.TempDir() + "/safepoints"
		v := begin(t, nil, "-Xlog:safepoint:file="+log, "-Xss512k", "-cp", classes, "Waiting", "1000", depth)
		v.up()
		var took []time.Duration
		for range 20 {
			stacks, err := v.asker().Ask(t.Context(), v.key())
			require.NoError(t, err)
			require.Equal(t, 1002, stacks.Workers)
			took = append(took, stacks.Took)
		}
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		stood := make(map[string][]time.Duration)
		for _, m := range regexp.MustCompile(`Safepoint "(\w+)".* Total: +(\d+) ns`).FindAllStringSubmatch(string(text), -1) {
			ns, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			stood[m[1]] = append(stood[m[1]], time.Duration(ns))
		}
		t.Logf("1,000 threads of %s frames: answers took %s", depth, spread(took))
		for _, name := range []string{"PrintThreads", "FindDeadlocks"} {
			require.Len(t, stood[name], 20, "safepoints: %v", stood)
			t.Logf("  %s: %s", name, spread(stood[name]))
		}
		v.lives()
	}
}

func spread(d []time.Duration) string {
	slices.Sort(d)
	return fmt.Sprintf("median %v, least %v, most %v", d[len(d)/2], d[0], d[len(d)-1])
}
