//go:build !linux

package e2e

import "syscall"

func diesWithParent() *syscall.SysProcAttr { return nil }
