package observability

import "syscall"

// diesWithParent leaves nothing behind when whoever started it is killed.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
