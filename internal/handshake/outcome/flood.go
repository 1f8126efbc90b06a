package outcome

import "time"

// Flood is many attempts from addresses that each come once, send a single SYN
// and answer no SYN-ACK: a SYN flood with spoofed addresses. Clients in a burst
// are distinguished by this: they repeat their SYN, or answer.
type Flood struct {
	Attempts uint64 // single SYNs that came to nothing, within the period
	Sources  uint64 // addresses that they came from, estimated
	Period   time.Duration
	// Certain: some were sent a SYN-ACK and did not answer. Before a full accept queue
	// nobody is sent one, and clients with a connect timeout below a second look alike.
	Certain bool
}

const (
	floodPeriod   = 10 * time.Second
	floodLeast    = 1000 // attempts within the period
	floodCounted  = 100  // from here on the addresses are counted
	floodOrder    = 16   // bits of the address map: 8 KiB
	floodSilent   = 50   // least number of SYN-ACKs that nobody answered
	floodDistinct = .5   // least number of addresses to an attempt
	floodAllOther = .9   // the same, where it is not certain
)

// floodWatch counts, for one port, what a flood consists of.
type floodWatch struct {
	begin   time.Duration
	suspect uint64 // attempts that came to nothing after a single SYN
	silent  uint64 // of these, those that were observed not to answer a SYN-ACK
	counted uint64 // of the suspects, those whose address is in sources
	sources *distinct
	last    *Flood // of the period before
}

// add takes in an attempt that came to nothing after a single SYN; silent, that
// it was sent a SYN-ACK and was observed not to answer.
func (f *floodWatch) add(at time.Duration, hash uint64, silent bool) {
	f.rotate(at)
	f.suspect++
	if silent {
		f.silent++
	}
	if f.suspect < floodCounted {
		return
	}
	if f.sources == nil {
		f.sources = newDistinct(floodOrder)
	}
	f.counted++
	f.sources.add(hash)
}

func (f *floodWatch) rotate(at time.Duration) {
	age := at - f.begin
	if age < floodPeriod {
		return
	}
	f.last = nil
	if age < 2*floodPeriod {
		f.last = f.judge()
	}
	f.begin, f.suspect, f.counted, f.silent = at, 0, 0, 0
	if f.sources != nil {
		f.sources.reset()
	}
}

// judge is nil for what is no flood.
func (f *floodWatch) judge() *Flood {
	if f.suspect < floodLeast {
		return nil
	}
	certain, distinct := f.silent >= floodSilent, floodDistinct
	if !certain {
		distinct = floodAllOther
	}
	different := f.sources.count()
	full := f.sources.set >= len(f.sources.bits)*63 // nearly all bits: more than can be counted
	if !full && different < distinct*float64(f.counted) {
		return nil
	}
	share := min(different/float64(f.counted), 1)
	return &Flood{Attempts: f.suspect, Sources: uint64(share * float64(f.suspect)), Period: floodPeriod, Certain: certain}
}

// now is the flood of this period or of the one before, whichever had more.
func (f *floodWatch) now(at time.Duration) *Flood {
	f.rotate(at)
	flood := f.judge()
	if flood == nil || f.last != nil && f.last.Attempts > flood.Attempts {
		return f.last
	}
	return flood
}
