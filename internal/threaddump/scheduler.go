package threaddump

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// errNoScheduler: the answer has no pool of carriers in it.
var errNoScheduler = errors.New("no scheduler of virtual threads in the answer")

// schedulerLines bounds what is read of the answer: the pool of the carriers stands first.
const schedulerLines = 8

// parseScheduler reads what the JVM says of the scheduler of its virtual threads
// (jcmd Thread.vthread_scheduler, since JDK 24): ForkJoinPool.toString. "active" are
// carriers that have a virtual thread, pinned ones that wait among them; "tasks" and
// "submissions" are virtual threads that could run and wait for a carrier.
func parseScheduler(in *bufio.Reader) (*model.VirtualScheduler, error) {
	for range schedulerLines {
		line, err := in.ReadSlice('\n')
		if s, ok := schedulerOf(string(line)); ok {
			return s, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, errNoScheduler
		case err != nil: // a line that is too long is none of these
			return nil, err
		}
	}
	return nil, errNoScheduler
}

func schedulerOf(line string) (*model.VirtualScheduler, bool) {
	_, list, ok := strings.Cut(line, "ForkJoinPool@")
	if !ok {
		return nil, false
	}
	_, list, _ = strings.Cut(list, "[")
	list, _, _ = strings.Cut(list, "]")
	n := make(map[string]int)
	for part := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(part, "=")
		if count, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && count >= 0 {
			n[strings.TrimSpace(name)] = count
		}
	}
	for _, name := range []string{"parallelism", "size", "active", "tasks", "submissions"} {
		if _, there := n[name]; !there {
			return nil, false
		}
	}
	return &model.VirtualScheduler{Parallelism: n["parallelism"], Carriers: n["size"], Mounted: n["active"], Queued: n["tasks"] + n["submissions"]}, true
}
