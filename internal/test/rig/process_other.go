//go:build !linux

package rig

import "syscall"

func DiesWithParent() *syscall.SysProcAttr { return nil }
