package hostproc

// Counting is what kernels before 6.2 offer: open files are listed.
func (fs FS) Counting() FS {
	fs.fdCount = false
	return fs
}
