package attacks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// memoryLimit is that of the manifests (resources.limits.memory), and maxPeak
// what the agent and its child processes may have had of it together.
const (
	memoryLimit = 128 << 20
	maxPeak     = 96 << 20
)

// group is a control group with the manifests' memory limit, version 1 or 2. Where
// neither can be made the agent gets a resource limit instead.
type group struct {
	dir, limit, events, anon string

	most atomic.Int64 // bytes of memory that is no file's
	stop chan struct{}
}

func newGroup(t *testing.T) *group {
	t.Helper()
	name := fmt.Sprintf("tcpdiag-attacks-%d-%d", os.Getpid(), time.Now().UnixNano())
	for _, g := range []*group{
		{dir: "/sys/fs/cgroup/memory/" + name, limit: "memory.limit_in_bytes", events: "memory.oom_control", anon: "total_rss"},
		{dir: "/sys/fs/cgroup/" + name, limit: "memory.max", events: "memory.events", anon: "anon"},
	} {
		if os.Mkdir(g.dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			require.Eventually(t, func() bool { err := os.Remove(g.dir); return err == nil || errors.Is(err, fs.ErrNotExist) }, time.Minute, 10*time.Millisecond)
		})
		if os.WriteFile(filepath.Join(g.dir, g.limit), []byte(strconv.Itoa(memoryLimit)), 0o600) == nil {
			return g
		}
	}
	t.Logf("no control group with a memory limit can be made here: RLIMIT_DATA instead")
	return &group{}
}

// wrap is the command line that runs another one within the group.
func (g *group) wrap(line []string) []string {
	if g.dir == "" {
		return append([]string{"prlimit", "--data=" + strconv.Itoa(memoryLimit), "--"}, line...)
	}
	return append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs")}, line...)
}

// measure keeps the most memory of all processes together until end.
func (g *group) measure() {
	g.stop = make(chan struct{})
	if g.dir == "" {
		return
	}
	go func() {
		for {
			select {
			case <-g.stop:
				return
			case <-time.After(5 * time.Millisecond):
				g.most.Store(max(g.most.Load(), g.number("memory.stat", g.anon)+g.number("memory.stat", "sock"))) // what is unread is the kernel's
			}
		}
	}()
}

func (g *group) end() { close(g.stop) }

// killed is how many processes the kernel had to end.
func (g *group) killed() int64 { return g.number(g.events, "oom_kill") }

func (g *group) number(file, key string) int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil || g.dir == "" {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == key {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
