package losses

import "time"

// peaks remembers the highest queue length of each of the last 60 slices of
// the window, in a fixed array: the fast loop writes it without allocating.
type peaks struct {
	slice  time.Duration // window / 60
	bins   [60]peak
	recent uint32 // the highest since takeRecent
}

type peak struct {
	at     int64 // number of the slice, 0 = never written
	length uint32
	when   time.Time
}

func newPeaks(window time.Duration) peaks {
	return peaks{slice: max(window/60, time.Millisecond)}
}

func (p *peaks) observe(now time.Time, length uint32) {
	p.recent = max(p.recent, length)
	at := now.UnixNano() / int64(p.slice)
	bin := &p.bins[at%int64(len(p.bins))]
	if bin.at != at || length >= bin.length {
		*bin = peak{at: at, length: length, when: now}
	}
}

// takeRecent returns the highest sample since it was last called.
func (p *peaks) takeRecent() int {
	recent := p.recent
	p.recent = 0
	return int(recent)
}

// highest returns the latest of the highest samples in the window that ends now.
func (p *peaks) highest(now time.Time) (length int, when time.Time, ok bool) {
	oldest := now.UnixNano()/int64(p.slice) - int64(len(p.bins))
	for i := range p.bins {
		b := &p.bins[i]
		if b.at <= oldest || b.at == 0 {
			continue
		}
		if !ok || int(b.length) > length || (int(b.length) == length && b.when.After(when)) {
			length, when, ok = int(b.length), b.when, true
		}
	}
	return length, when, ok
}
