package observability

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// `make observability` comes up with everything, and Ctrl-C leaves nothing.
func TestLabStartsAndStops(t *testing.T) {
	artifacts(t)
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "lab")
	build := exec.Command("go", "build", "-o", program, "./internal/test/observability/up")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	scratch := t.TempDir()
	lab := exec.Command(program, "-interval", "1s")
	lab.Dir, lab.SysProcAttr = root, diesWithParent()
	lab.Env = append(os.Environ(), "TMPDIR="+scratch)
	var printed, failed bytes.Buffer
	stdout, err := lab.StdoutPipe()
	require.NoError(t, err)
	lab.Stderr = &failed
	require.NoError(t, lab.Start())
	lines := bufio.NewScanner(io.TeeReader(stdout, &printed))
	for lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C") {
		continue
	}
	addresses := []string{"127.0.0.1:8080", "127.0.0.1:10889", "127.0.0.1:9090", "127.0.0.1:9093", "127.0.0.1:9099"}
	for _, address := range addresses {
		require.True(t, answers(address), "%s\n%s", address, &printed)
	}
	stopping := time.Now()
	require.NoError(t, lab.Process.Signal(syscall.SIGINT))
	_, _ = io.Copy(io.Discard, stdout)
	require.NoError(t, lab.Wait(), "%s%s", &printed, &failed)
	require.Less(t, time.Since(stopping), 20*time.Second) // each of the four has five seconds
	for _, address := range addresses {
		require.False(t, answers(address), address)
	}
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	for _, file := range left {
		require.NotContains(t, file.Name(), "tcpdiag-observability")
	}
}

func answers(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	return c.Close() == nil
}
