package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// writeStub makes an image of the stub alone, whose program is called java.
func writeStub(t *testing.T, c *cluster) string {
	t.Helper()
	layer := writeLayer(t, c, "stub.layer", func(w *tar.Writer) { addFile(t, w, c.program("stub"), "java", 0o755) })
	return writeImage(t, c.file("stub.image"), "stub:test", imageConfig{Entrypoint: []string{"/java"}}, layer)
}

// podName is who a process is, in one word.
type podName struct{ Namespace, Pod, Container, UID string }

// truly is the part of a container's manifest by which the kubelet itself tells each process who it
// is, where the agent does not read.
func truly(container string) string {
	field := func(name, path string) string {
		return fmt.Sprintf("{name: %s, valueFrom: {fieldRef: {fieldPath: %s}}}", name, path)
	}
	return "[" + strings.Join([]string{
		field("TRUE_NAMESPACE", "metadata.namespace"), field("TRUE_POD", "metadata.name"), field("TRUE_UID", "metadata.uid"),
		"{name: TRUE_CONTAINER, value: " + container + "}",
	}, ", ") + "]"
}

// stub is one that runs.
type stub struct {
	podName
	began time.Time
}

// socket is where a stub listens: each pod has a network namespace of its own.
type socket struct {
	netns uint64
	port  uint16
}

// stubs are those of this machine. What a process is, it is asked once: fifty pods that start leave
// little of two processors to the test.
type stubs struct {
	known map[process]*running // nil for one that is no stub
}

// process is one for good: by its number and by when it began, in ticks of the kernel.
type process struct {
	dir   string
	start string
}

// running is a stub and the socket that it has.
type running struct {
	stub
	at socket
}

// running are the stubs that run, by the socket that they have.
func (s *stubs) running() map[socket]stub {
	found, known := map[socket]stub{}, map[process]*running{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		p := process{dir: dir, start: startOf(dir)}
		one, is := s.known[p]
		if !is || one != nil && one.began.IsZero() { // a process becomes the stub by exec
			one = stubOf(p)
		}
		known[p] = one
		if one != nil && !one.began.IsZero() {
			found[one.at] = one.stub
		}
	}
	s.known = known
	return found
}

// stubOf is what a process is, nil for no stub; without the time for one that may still become it.
func stubOf(p process) *running {
	comm, _ := os.ReadFile(filepath.Join(p.dir, "comm"))
	switch name := string(bytes.TrimSpace(comm)); {
	case strings.HasPrefix(name, "runc"):
		return new(running)
	case name != "java":
		return nil
	}
	env, _ := os.ReadFile(filepath.Join(p.dir, "environ"))
	one := &running{at: socket{port: 8080}}
	for _, entry := range strings.Split(string(env), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "TRUE_NAMESPACE":
			one.Namespace = value
		case "TRUE_POD":
			one.Pod = value
		case "TRUE_UID":
			one.UID = value
		case "TRUE_CONTAINER":
			one.Container = value
		case "LISTEN":
			port, _ := strconv.ParseUint(value, 10, 16)
			one.at.port = uint16(port)
		}
	}
	if ns, err := os.Readlink(filepath.Join(p.dir, "ns/net")); err == nil {
		_, _ = fmt.Sscanf(ns, "net:[%d]", &one.at.netns)
	}
	if one.UID != "" && one.at.netns != 0 {
		one.began = p.began()
	}
	return one
}

// startOf is when a process was started, in ticks since boot, as the kernel writes it; "" for none.
func startOf(dir string) string {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const start = 22 - 3 // the fields after the name begin with the third
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}

// began is that by the clock, zero where it is not known.
func (p process) began() time.Time {
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}
	}
	now := time.Now()
	ticks, err := strconv.ParseFloat(p.start, 64)
	if err != nil {
		return time.Time{}
	}
	up, err := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
	if err != nil {
		return time.Time{}
	}
	return now.Add(-time.Duration((up - ticks/100) * float64(time.Second)))
}

// follower holds what an agent says of the stubs against the truth, four times a second.
type follower struct {
	url   string
	truth stubs // of the loop alone

	mu     sync.Mutex
	wrong  []string
	before map[string]bool          // of which only what is wrong is still of interest
	named  map[string]time.Duration // after its start, by container
	seen   map[string]time.Duration // how old it was when it was last seen, by container
	asked  int
	series int // at most
	listed int // listeners, at most
}

func follow(t *testing.T, url string) *follower {
	t.Helper()
	f := &follower{url: url, named: map[string]time.Duration{}, seen: map[string]time.Duration{}}
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			f.look()
			if i%20 == 0 {
				f.count()
			}
			select {
			case <-end:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(end); <-ended })
	return f
}

func (f *follower) get(path string) []byte {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(f.url + path)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return body
}

// key is one container of one pod.
func (n podName) key() string { return n.UID + "/" + n.Container }

func (f *follower) look() {
	var said struct {
		Time      time.Time
		Listeners []struct {
			Address string
			Netns   uint64
			Port    uint16
			Pod     *struct{ Namespace, Name, Container, UID string }
		}
	}
	if json.Unmarshal(f.get("/api/v1/snapshot"), &said) != nil {
		return
	}
	now, after := time.Now(), f.truth.running()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	f.listed = max(f.listed, len(said.Listeners))
	for _, one := range after {
		if !f.before[one.key()] {
			f.seen[one.key()] = now.Sub(one.began)
		}
	}
	for _, l := range said.Listeners {
		if l.Pod == nil {
			continue
		}
		// The kernel gives a namespace the number of one that is gone: then the snapshot may be of that one.
		one, is := after[socket{l.Netns, l.Port}]
		if !is || said.Time.Before(one.began) {
			continue
		}
		got := podName{l.Pod.Namespace, l.Pod.Name, l.Pod.Container, l.Pod.UID}
		if got.Container == "" { // not known yet
			got.Container = one.Container
		}
		if got != one.podName {
			f.wrong = append(f.wrong, fmt.Sprintf("%s is said to be %+v, and is %+v", l.Address, got, one.podName))
			continue
		}
		if _, named := f.named[one.key()]; !named && !f.before[one.key()] && l.Pod.Container != "" {
			f.named[one.key()] = now.Sub(one.began)
		}
	}
}

// mistakes are the wrong names that were said.
func (f *follower) mistakes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.wrong)
}

// namedNow is how many containers are named.
func (f *follower) namedNow() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.named)
}

// restart looks at those that start from now on. How many series there are now.
func (f *follower) restart() int {
	f.mu.Lock()
	f.series = 0
	if f.before == nil {
		f.before = map[string]bool{}
	}
	for key := range f.seen {
		f.before[key] = true
	}
	clear(f.seen)
	clear(f.named)
	f.mu.Unlock()
	f.count()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.series
}

// count counts the series that are exported.
func (f *follower) count() {
	n := 0
	for line := range strings.Lines(string(f.get("/metrics"))) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series = max(f.series, n)
}

// unnamed are the containers that have run for longer and have no name.
func (f *follower) unnamed(longer time.Duration) (which []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, age := range f.seen {
		if _, ok := f.named[key]; !ok && age > longer {
			which = append(which, key)
		}
	}
	return which
}

// unnamedAfter are those that had no name when they had run for that long.
func (f *follower) unnamedAfter(long time.Duration) []string {
	which := f.unnamed(long)
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, took := range f.named {
		if took > long {
			which = append(which, key)
		}
	}
	return which
}
