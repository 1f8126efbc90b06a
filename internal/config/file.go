// Package config reads the agent's configuration file: strict YAML into plain
// values. It opens one file and knows nothing of the command line or of what
// the values are for.
package config

import (
	"fmt"
	"io"
	"os"
	"time"
)

// What the file and the command line agree on.
const (
	MinSampleInterval = time.Millisecond
	MaxSampleInterval = 10 * time.Second
	MinScanInterval   = 100 * time.Millisecond
	MaxScanInterval   = time.Minute
)

// What one file may hold. The agent exports what it says, so it is bounded.
const (
	maxBytes      = 1 << 20
	maxPorts      = 1000 // of all targets together
	maxLabels     = 16   // of one target, and of all that is watched
	maxLabelName  = 64   // bytes
	maxLabelValue = 256  // bytes
)

// File is what a configuration file says. What it does not say is nil, or
// empty.
type File struct {
	Targets        []Target
	All            *bool
	AllNamespaces  *bool
	MaxListeners   *int
	SampleInterval *time.Duration
	ScanInterval   *time.Duration
	Labels         map[string]string
	Limits         Limits
	Actuator       string
}

// Target is something to watch: ports on which a listener is expected, of one
// process or of any; or all that a process listens on.
type Target struct {
	Line     int      // in the file
	Ports    []uint16 // empty: all of PID's
	PID      int      // 0: any process
	Labels   map[string]string
	Limits   Limits
	Actuator string // base URL, "" for none
}

// Limits are a connector's, as a person knows them.
type Limits struct {
	MaxConnections *Number // -1: no limit
	AcceptCount    *Number
	MaxThreads     *Number
}

// Number is a value and the line it is on.
type Number struct{ Value, Line int }

// Load reads and checks a file. What is wrong with its contents is an *Error.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return Parse(path, data)
}
