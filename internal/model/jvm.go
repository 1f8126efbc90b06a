package model

import "strings"

// IsJVM goes by the name of a process's main thread, which any user may read:
// java, or jsvc (jsvc.exec) of commons-daemon.
func IsJVM(comm string) bool { return comm == "java" || strings.HasPrefix(comm, "jsvc") }
