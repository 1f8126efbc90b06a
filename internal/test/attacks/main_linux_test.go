package attacks

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// partVariable makes this program play a part: the hostile process, an honest
// one, or the control.
const partVariable = "TCPDIAG_ATTACK_PART"

// part is what such a process does.
type part struct {
	Control bool // tick, and say how late the ticks were

	From, To    int           // ports to listen on
	Accept      bool          // and take the connections
	Say         string        // to each, what else
	Threads     []string      // names of threads
	NumberedOf  int           // threads named like those of that many connectors
	Spawn       []string      // start processes with these arguments, again and again
	SpawnSilent bool          // which have an Actuator that says nothing
	Comm        string        // its own name
	Host        string        // to listen at, 127.0.0.1 if empty
	Heard       string        // a file for what the connections send
	PerSecond   int           // listeners that are opened each second, each on an address of its own, for a second
	Flip        string        // how an argument begins whose end is changed all the time
	Full        bool          // keep the queue of each listener full, and lose more connections
	Every       time.Duration // be in such trouble for some seconds with so much time between, each time a line in Heard; or how far apart Spawn starts two
	Mapped      string        // poll in memory that is mapped from this file (proctest.MappedFile)
	Clients     int           // be that many clients of the port From at once, say what became of them, and end
}

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(partVariable)
	if !ok {
		code := m.Run()
		_ = os.RemoveAll(programs())
		os.Exit(code)
	}
	var p part
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.play()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (p *part) variable() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return partVariable + "=" + string(text)
}
