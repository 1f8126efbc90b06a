package clients

// Remembered is how many addresses and ports there is something of.
func (f *Follower) Remembered() (n int) {
	for _, p := range f.namespaces {
		n += len(p.accounts) + len(p.last)
	}
	return n
}

// Locked reports whether somebody has its lock.
func (f *Follower) Locked() bool {
	if f.mu.TryLock() {
		f.mu.Unlock()
		return false
	}
	return true
}
