//go:build !linux

package examine

import (
	"io"
	"os"
	"os/exec"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// Serve is for Linux only.
func Serve(hostproc.FS, io.Reader, io.Writer) error { return hostproc.ErrNotSupported }

func dieWithUs(*exec.Cmd) {}

func passage(*exec.Cmd) (*os.File, error) { return nil, hostproc.ErrNotSupported }

func received(*os.File) PerfData { return PerfData{} }
