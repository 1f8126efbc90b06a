package main

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// scenario is one experiment. load says what the clients do and how patient
// they are.
type scenario struct {
	name       string
	load       string
	sysctl     map[string]string // of its namespace
	limit      time.Duration     // 0 is scenarioLimit
	needsK6    bool
	locust     bool
	standalone bool
	run        func(*bench)
}

// scenarioLimit ends a scenario that hangs.
const scenarioLimit = 2 * time.Minute

// scenarios are all of them in the order of the table.
func scenarios() []scenario {
	return slices.Concat(concurrent(), selfCalling(), settings(), virtual(), keepAlive(), confused(), confusedClients(), healthy())
}

// row is a line of the table.
type row struct {
	Name    string
	Load    string
	Clients string // what they counted
	Said    string // what tcpdiag said
	Plan    string // what plan predicted
	Wrong   []string
	Broken  string // why it could not be run to its end
	Seconds float64
}

func (r row) agrees() bool { return r.Broken == "" && len(r.Wrong) == 0 }

// kit is what every scenario works with.
type kit struct {
	rig.Artifacts
	Tools tools
}
