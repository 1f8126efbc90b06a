//go:build !linux

package discovery

import (
	"io"
	"os/exec"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// Serve is for Linux only.
func Serve(hostproc.FS, io.Reader, io.Writer) error { return hostproc.ErrNotSupported }

func dieWithUs(*exec.Cmd) {}
