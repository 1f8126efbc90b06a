package e2e

import "syscall"

// diesWithParent leaves nothing behind when a test is killed.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
