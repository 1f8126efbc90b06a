//go:build !linux

package command

import "github.com/tcpdiag/tcpdiag/internal/hostproc"

func serveMemory() error { return hostproc.ErrNotSupported }
