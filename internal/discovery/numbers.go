package discovery

import "time"

// firstNumbers is how long is waited, in all, for processes that are examined for the
// first time.
const firstNumbers = time.Second

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
	return e.current.Numbers
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
