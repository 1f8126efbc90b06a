package observability

import "syscall"

// diesWithParent leaves nothing behind when its parent is killed.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
