package agent

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// heapGrowth is how much the heap may grow between two collections, in per cent
	// of what is in use. Go's 100 would let an agent of fifty pods keep ten mebibytes
	// of garbage; a collection of so small a heap takes some milliseconds.
	heapGrowth = 50
	// memoryPart is what the agent keeps itself within of its control group's memory. The rest is for
	// the program's file, and for the child processes that read configurations.
	memoryPart = 0.5
	// releaseEvery is how often what is not used goes back to the kernel: bursts and
	// scrapes leave holes in the heap that the runtime would keep.
	releaseEvery = time.Minute
	// started is when what only the start has needed is given back.
	started = 5 * time.Second
)

// LimitHeap sets the growth and, in a control group with a limit of memory, at which size
// collections come more often, unless the environment says another (GOGC, GOMEMLIMIT).
func LimitHeap() {
	if !heapIsOurs() {
		return
	}
	debug.SetGCPercent(heapGrowth)
	if limit, err := memlimit.FromCgroup(); err == nil { // else there is no limit
		debug.SetMemoryLimit(int64(float64(limit) * memoryPart))
	}
}

func heapIsOurs() bool { return os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" }

// release gives memory back until ctx is done. What of the program file only its
// beginning needs (packages that are initialized, flags) goes back at once.
func release(ctx context.Context, log *slog.Logger) error {
	if !heapIsOurs() {
		return nil
	}
	timer := time.NewTimer(started)
	defer timer.Stop()
	for {
		if err := releasePages(); err != nil {
			log.Debug("pages of the program file stay mapped", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		debug.FreeOSMemory()
		timer.Reset(releaseEvery)
	}
}

// processors are enough: one for the samples, and one for a scan, a scrape or
// the garbage collector at the same time, which must not make samples late. More
// would have the collector work on all processors of a large host at once.
const processors = 2

// LimitProcessors holds the program to them (GOMAXPROCS), unless the
// environment says another number.
func LimitProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		// Set even where it changes nothing: what is set does not follow the
		// container's limit any more.
		runtime.GOMAXPROCS(min(processors, runtime.GOMAXPROCS(0)))
	}
}
