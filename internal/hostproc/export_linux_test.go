package hostproc

// Counting is what kernels before 6.2 offer: open files are listed.
func (fs FS) Counting() FS {
	fs.fdCount = false
	return fs
}

// WithoutCgroups sees no cgroup file system by itself.
func (fs FS) WithoutCgroups() FS {
	fs.cgroups = nil
	return fs
}
