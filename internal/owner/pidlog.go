package owner

// pidLog numbers processes in the order in which they were first seen.
type pidLog struct {
	first  map[int]int // by pid
	number int
}

// update takes the pids of now and forgets the others.
func (l *pidLog) update(pids []int) {
	next := make(map[int]int, len(pids))
	for _, pid := range pids {
		n, ok := l.first[pid]
		if !ok {
			l.number++
			n = l.number
		}
		next[pid] = n
	}
	l.first = next
}

func (l *pidLog) alive(pid int) bool {
	_, ok := l.first[pid]
	return ok
}
