package hostproc

// ProcessKey names a process uniquely since boot.
type ProcessKey struct {
	PID       int
	StartTime uint64 // field 22 of /proc/PID/stat, in clock ticks since boot
}
