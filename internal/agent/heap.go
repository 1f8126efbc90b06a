package agent

import (
	"context"
	"os"
	"runtime/debug"
	"time"
)

const (
	// heapGrowth is how much the heap may grow between two collections, in per cent
	// of what is in use. Go's 100 would let an agent of fifty pods keep ten mebibytes
	// of garbage; a collection of so small a heap takes some milliseconds.
	heapGrowth = 50
	// releaseEvery is how often what the heap does not use goes back to the kernel:
	// bursts and scrapes leave holes that the runtime would keep.
	releaseEvery = time.Minute
)

// LimitHeap sets the growth, unless the environment says another (GOGC,
// GOMEMLIMIT).
func LimitHeap() {
	if heapIsOurs() {
		debug.SetGCPercent(heapGrowth)
	}
}

func heapIsOurs() bool { return os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" }

// release gives memory back until ctx is done.
func release(ctx context.Context) error {
	if !heapIsOurs() {
		return nil
	}
	ticker := time.NewTicker(releaseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			debug.FreeOSMemory()
		}
	}
}
