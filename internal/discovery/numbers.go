package discovery

import (
	"strconv"
	"strings"
	"time"
)

const (
	// maxNumbers bounds the numbers of one command line.
	maxNumbers = 64
	// firstNumbers is how long is waited, in all, for processes that are examined
	// for the first time.
	firstNumbers = time.Second
)

// Numbers are those in a process's command line that can be ports, each by itself:
// "--server.port=8443" names 8443, not 443. It is nil while the process is being
// examined for the first time and patience is at its end.
func (d *Discoverer) Numbers(pid int, startTime uint64) []uint16 {
	e := d.entry(pid, startTime)
	if first := d.examine(e); first != nil {
		d.waitForNumbers(first)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.current == nil {
		return nil
	}
	return e.current.numbers
}

func (d *Discoverer) waitForNumbers(first <-chan struct{}) {
	d.patience.Lock()
	left := firstNumbers - d.numbersWaited
	d.patience.Unlock()
	begin := time.Now()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-first:
	case <-timer.C:
	}
	d.patience.Lock()
	d.numbersWaited += time.Since(begin)
	d.patience.Unlock()
}

// numbersIn takes the numbers out of a command line.
func numbersIn(args []string) (out []uint16) {
	for _, arg := range args {
		for word := range strings.FieldsFuncSeq(arg, func(r rune) bool { return r < '0' || r > '9' }) {
			if n, err := strconv.ParseUint(word, 10, 16); err == nil && n > 0 && len(out) < maxNumbers {
				out = append(out, uint16(n))
			}
		}
	}
	return out
}
