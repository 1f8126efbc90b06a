package clients

// Remembered is how many addresses and ports there is something of.
func (f *Follower) Remembered() (n int) {
	for _, p := range f.namespaces {
		n += len(p.accounts) + len(p.last)
	}
	return n
}
