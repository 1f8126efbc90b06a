//go:build !linux

package observability

import "syscall"

func diesWithParent() *syscall.SysProcAttr { return nil }
