package rig

import (
	"syscall"
)

// DiesWithParent leaves nothing behind when a test is killed.
func DiesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
