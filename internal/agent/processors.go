package agent

import (
	"os"
	"runtime"
)

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
