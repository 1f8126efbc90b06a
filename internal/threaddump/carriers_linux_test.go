package threaddump

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is read of the scheduler is what the JVM's own bean says at the same time.
func TestCarriersByTheJVMsOwnAccount(t *testing.T) {
	java, classes := needVirtual(t)
	//nolint:gosec // the JDK's own
	out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(java), "javac"), "--release", "21", "-d", classes, "testdata/Carriers.java").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Setenv("TCPDIAG_TEST_JAVA", java)
	v := begin(t, nil, "-Xrs", "-Djdk.virtualThreadScheduler.parallelism=2", "-Djdk.virtualThreadScheduler.maxPoolSize=2", "-cp", classes, "Carriers", "20")
	bean, err := v.out.ReadString('\n')
	require.NoError(t, err)
	v.up()
	stacks, err := v.asker().Ask(t.Context(), v.key())
	require.NoError(t, err)
	if strings.TrimSpace(bean) == "none" {
		require.Nil(t, stacks.Scheduler, "this JVM cannot say")
		return
	}
	s := stacks.Scheduler
	require.NotNil(t, s)
	require.Equal(t, strings.TrimSpace(bean), fmt.Sprintf("%d %d %d %d", s.Parallelism, s.Carriers, s.Mounted, s.Queued))
	require.True(t, s.Starved())
	v.lives()
}
