package model

// FileCall is a call on a file or a pipe in which a thread can be blocked.
type FileCall int

// The calls.
const (
	FileOpen FileCall = iota
	FileRead
	FileWrite
	FileLock // of a file, which somebody else has
	FileSync
	FileStat
	NumFileCalls
)

// Name is the call's in JSON.
func (c FileCall) Name() string {
	return [NumFileCalls]string{"open", "read", "write", "file_lock", "fsync", "stat"}[c]
}

// String is the call as a manual's page.
func (c FileCall) String() string {
	return [NumFileCalls]string{"open(2)", "read(2)", "write(2)", "fcntl(2) or flock(2), waiting for the lock of a file,", "fsync(2)", "stat(2)"}[c]
}

// Files is how many threads are in each of these calls.
func (w *Workers) Files() [NumFileCalls]int {
	return [NumFileCalls]int{
		FileOpen: w.Opening, FileRead: w.ReadingFile, FileWrite: w.Writing, FileLock: w.Locking, FileSync: w.Syncing, FileStat: w.Stating,
	}
}

// AddFile counts threads that are in one of them.
func (w *Workers) AddFile(c FileCall, n int) {
	*[NumFileCalls]*int{
		FileOpen: &w.Opening, FileRead: &w.ReadingFile, FileWrite: &w.Writing, FileLock: &w.Locking, FileSync: &w.Syncing, FileStat: &w.Stating,
	}[c] += n
}

// InFiles is how many threads are in such a call.
func (w *Workers) InFiles() (n int) {
	for _, k := range w.Files() {
		n += k
	}
	return n
}

// FileCall is the call that most of these are in.
func (w *Workers) FileCall() (most FileCall) {
	files := w.Files()
	for c, n := range files {
		if n > files[most] {
			most = FileCall(c)
		}
	}
	return most
}
