package advice

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// nrOpen is fs.nr_open as the kernel starts with it: no open-files limit can be
// set above it, not by root either.
const nrOpen = 1 << 20

// FilesLimit says where the open-files limit is set.
func FilesLimit(to int) string {
	s := phrase.Sprintf("LimitNOFILE=%v in the unit, ulimit -n, or the container's ulimits", to)
	if to > nrOpen {
		s += phrase.Sprintf("; fs.nr_open, %v by default, has to be raised first", nrOpen)
	}
	return s
}

// FilesNeeded are a tenth more than the connections and what else is open take.
func FilesNeeded(l *model.Listener, connections int) int {
	used, _, _ := reading.OpenFiles(l)
	n, _ := reading.SlotsInUse(l)
	return RoundUp((connections + max(0, used-n)) * 11 / 10)
}

// filesFor says what else must be raised before the server can hold that many
// connections: each takes a file descriptor.
func filesFor(l *model.Listener, connections int) string {
	_, most, ok := reading.OpenFiles(l)
	_, seen := reading.SlotsInUse(l)
	if !ok || !seen {
		return "Each connection takes a file descriptor: check the open-files limit first."
	}
	need := FilesNeeded(l, connections)
	if need <= most {
		return phrase.Sprintf("Each connection takes a file descriptor; the limit of %d suffices.", most)
	}
	return phrase.Sprintf("Each connection takes a file descriptor: raise the open-files limit from %v to %v first (%s).", most, need, FilesLimit(need))
}

// RaiseFiles doubles the limit, or goes to what is needed if that is more; not
// beyond what the kernel allows without need.
func RaiseFiles(most, need int) string {
	to := MoreFiles(most, need)
	s := phrase.Sprintf("Raise the open-files limit from %v to %v (%s) and restart.", most, to, FilesLimit(to))
	if most >= nrOpen {
		s += " That many open files suggest a leak."
	}
	return s
}

// MoreFiles is an open-files limit that is enough for what is needed, and more than there is.
func MoreFiles(most, need int) int {
	to := max(RoundUp(2*most), need)
	if need <= nrOpen && most < nrOpen {
		to = min(to, nrOpen)
	}
	return to
}
