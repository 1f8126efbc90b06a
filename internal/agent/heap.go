package agent

import (
	"os"
	"runtime/debug"
)

// heapGrowth is how much the heap may grow between two collections, in per cent
// of what is in use. Go's 100 would let an agent of fifty pods keep ten mebibytes
// of garbage; a collection of so small a heap takes some milliseconds.
const heapGrowth = 50

// LimitHeap sets it, unless the environment says another (GOGC, GOMEMLIMIT).
func LimitHeap() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
