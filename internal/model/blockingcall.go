package model

// BlockingCall is a call, on something else than a TCP connection, in which a thread can be blocked.
type BlockingCall int

// The calls.
const (
	FileOpen BlockingCall = iota
	FileRead
	FileWrite
	FileLock // of a file, which somebody else has
	FileSync
	FileStat
	UDPReceive  // for an answer over UDP, as of a name server
	UnixReceive // for an answer on a socket of the Unix domain
	NumBlockingCalls
)

// Name is the call's in JSON.
func (c BlockingCall) Name() string {
	return [NumBlockingCalls]string{"open", "read", "write", "file_lock", "fsync", "stat", "udp", "unix_socket"}[c]
}

// String is the call as a manual's page, of an answer where it is to come from.
func (c BlockingCall) String() string {
	return [NumBlockingCalls]string{
		"open(2)", "read(2)", "write(2)", "fcntl(2) or flock(2), waiting for the lock of a file,", "fsync(2)", "stat(2)",
		"over UDP", "on a Unix socket",
	}[c]
}

// OnSocket reports whether it waits for an answer, not for a file or a pipe.
func (c BlockingCall) OnSocket() bool { return c == UDPReceive || c == UnixReceive }

// Blocked is how many threads are in each of these calls.
func (w *Workers) Blocked() (by [NumBlockingCalls]int) {
	for c, n := range w.blocked() {
		by[c] = *n
	}
	return by
}

// AddBlocked counts threads that are in one of them.
func (w *Workers) AddBlocked(c BlockingCall, n int) { *w.blocked()[c] += n }

func (w *Workers) blocked() [NumBlockingCalls]*int {
	return [NumBlockingCalls]*int{
		FileOpen: &w.Opening, FileRead: &w.ReadingFile, FileWrite: &w.Writing, FileLock: &w.Locking, FileSync: &w.Syncing, FileStat: &w.Stating,
		UDPReceive: &w.ReceivingUDP, UnixReceive: &w.ReceivingUnix,
	}
}

// InCalls is how many threads are in such a call.
func (w *Workers) InCalls() (n int) {
	for _, k := range w.Blocked() {
		n += k
	}
	return n
}

// Call is the call that most of these are in.
func (w *Workers) Call() (most BlockingCall) {
	by := w.Blocked()
	for c, n := range by {
		if n > by[most] {
			most = BlockingCall(c)
		}
	}
	return most
}
