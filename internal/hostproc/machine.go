package hostproc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Machine is what a mounted proc file system shows of the machine.
type Machine struct {
	mount string
	proc  procfs.FS
}

// Sysctl is the file of a kernel setting: Sysctl("net.core.somaxconn").
func (m Machine) Sysctl(name string) string {
	return filepath.Join(m.mount, "sys", strings.ReplaceAll(name, ".", "/"))
}

// Hostname is the name of the machine or, in a container, of the pod: that of
// the reader's own UTS namespace.
func (m Machine) Hostname() (string, error) { return m.kernelString("hostname") }

// KernelRelease is what uname -r prints: "6.18.0".
func (m Machine) KernelRelease() (string, error) { return m.kernelString("osrelease") }

func (m Machine) kernelString(name string) (string, error) {
	data, err := os.ReadFile(m.Sysctl("kernel." + name))
	if err != nil {
		return "", fmt.Errorf("hostproc: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// BootTime is when the machine booted by its present clock (btime of
// /proc/stat); it moves when the clock is set.
func (m Machine) BootTime() (time.Time, error) {
	stat, err := m.proc.Stat()
	if err != nil {
		return time.Time{}, fmt.Errorf("hostproc: boot time: %w", err)
	}
	return time.Unix(int64(stat.BootTime), 0), nil
}

// Uptime is the time since boot, suspended time included: the clock of
// Process.StartTime.
func (m Machine) Uptime() (time.Duration, error) {
	data, err := os.ReadFile(filepath.Join(m.mount, "uptime"))
	if err != nil {
		return 0, fmt.Errorf("hostproc: %w", err)
	}
	first, _, _ := strings.Cut(string(data), " ")
	up, err := time.ParseDuration(strings.TrimSpace(first) + "s")
	if err != nil {
		return 0, fmt.Errorf("hostproc: uptime %q: %w", data, ErrMalformed)
	}
	return up, nil
}

// Runnable is how many threads of the machine run, or could if they had a CPU (the
// first of the fourth field of loadavg).
func (m Machine) Runnable() (int, error) {
	var buf [64]byte
	data, err := procfile.Read(filepath.Join(m.mount, "loadavg"), buf[:])
	if err != nil {
		return 0, fmt.Errorf("hostproc: %w", err)
	}
	fields := bytes.Fields(data)
	if len(fields) < 4 {
		return 0, fmt.Errorf("hostproc: loadavg %q: %w", data, ErrMalformed)
	}
	running, _, _ := bytes.Cut(fields[3], []byte{'/'})
	n, ok := procfile.Decimal(running)
	if !ok {
		return 0, fmt.Errorf("hostproc: loadavg %q: %w", data, ErrMalformed)
	}
	return n, nil
}
