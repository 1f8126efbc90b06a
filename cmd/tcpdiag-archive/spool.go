package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

// The kinds of what waits in the spool.
const (
	kindEvent     = "event"
	kindRecording = "recording"
)

// block is what a file takes of a disk at least: many small ones take more than their bytes.
const block = 4 << 10

// onDisk is what a file of that size takes.
func onDisk(size int64) int64 { return max(1, (size+block-1)/block) * block }

// spool is a folder of what is on its way: files in the order in which they came. What
// is in it survives a restart; what they take of the disk is bounded, and with it their number.
type spool struct {
	root *os.Root
	lock *os.File
	max  int64
	log  *slog.Logger
	lost func(kind string)

	mu     sync.Mutex
	items  []item // the oldest first
	used   int64
	number uint64
	free   uint64 // the latest that may be sent
	wake   map[string]chan struct{}
}

// item is a file in the spool: NUMBER.KIND.
type item struct {
	number uint64
	kind   string
	owner  string // whose share it is: of whom most waits, the oldest is dropped first
	size   int64  // on disk
}

func (i item) name() string { return fmt.Sprintf("%020d.%s", i.number, i.kind) }

// openSpool makes the folder where it is not there, takes it, and lists what waits in it.
func openSpool(path string, most int64, log *slog.Logger) (*spool, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	s := &spool{
		root: root, max: most, log: log, lost: func(string) {},
		wake: map[string]chan struct{}{kindEvent: make(chan struct{}, 1), kindRecording: make(chan struct{}, 1)},
	}
	if err := s.take(path); err != nil {
		s.close()
		return nil, err
	}
	if err := s.list(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *spool) take(path string) (err error) {
	if s.lock, err = s.root.OpenFile(".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if errors.Is(syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s: another archiver uses it", path)
	}
	return nil // a file system without locks is used without
}

func (s *spool) close() {
	if s.lock != nil {
		_ = s.lock.Close()
	}
	_ = s.root.Close()
}

func (s *spool) list() error {
	dir, err := s.root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	foreign := 0
	for e, err := range entriesOf(dir) {
		if err != nil {
			return err
		}
		if filepath.Ext(e.Name()) == ".tmp" { // was not finished
			_ = s.root.Remove(e.Name())
			continue
		}
		number, kind, _ := strings.Cut(e.Name(), ".")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || kind != kindEvent && kind != kindRecording || !e.Type().IsRegular() {
			continue
		}
		i := item{number: n, kind: kind}
		data, err := s.read(i)
		if err != nil {
			foreign++
			continue
		}
		i.size, i.owner = onDisk(int64(len(data))), ownerOf(kind, data)
		s.items = append(s.items, i)
		s.used += i.size
		s.number = max(s.number, n)
	}
	if foreign > 0 {
		s.log.Warn("files in the spool are not sent: they are of another user, others may write to them, or they cannot be read", "files", foreign)
	}
	s.free = s.number
	slices.SortFunc(s.items, func(a, b item) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	s.make(kindEvent, "", 0) // an earlier run may have had more room
	return nil
}

// entriesOf are those of a folder, which others may have filled, some at a time.
func entriesOf(dir *os.File) iter.Seq2[fs.DirEntry, error] {
	return func(yield func(fs.DirEntry, error) bool) {
		for {
			entries, err := dir.ReadDir(256)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			if len(entries) == 0 {
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// ownerOf is whose an item is, of an earlier run.
func ownerOf(kind string, data []byte) string {
	var e records.Event
	var m records.Manifest
	if kind == kindEvent && json.Unmarshal(data, &e) == nil {
		return e.Origin.Owner()
	}
	if head, _, ok := records.CutLine(data); ok && json.Unmarshal(head, &m) == nil {
		return m.Origin.Owner()
	}
	return ""
}

// put adds an item. Where there is no room, something else is dropped for it, or it.
func (s *spool) put(kind, owner string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := onDisk(int64(len(data)))
	if !s.make(kind, owner, size) {
		s.drop(item{kind: kind, owner: owner, size: size}, "it finds no room in the spool")
		return nil
	}
	s.number++
	i := item{number: s.number, kind: kind, owner: owner, size: size}
	if err := s.write(i.name(), data); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.items = append(s.items, i)
	s.used += size
	return nil
}

// make has room for an item of that size: of the owner of whom most would wait with it the oldest
// recording is dropped, for a log record also the oldest log record.
func (s *spool) make(kind, owner string, size int64) bool {
	for s.used+size > s.max {
		i := s.surplus(kind, owner, size)
		if i < 0 || size > s.max {
			return false
		}
		dropped := s.items[i]
		s.remove(i)
		s.drop(dropped, "another takes its room in the spool")
	}
	return true
}

// surplus is the index of what goes first, -1 for what is new: its owner would have most, and nothing to
// give up for it.
func (s *spool) surplus(kind, owner string, size int64) int {
	sizes := map[string]int64{owner: size}
	for _, i := range s.items {
		sizes[i.owner] += i.size
	}
	oldest := func(of string) int {
		best := -1
		for n, i := range s.items {
			if i.kind == of && (best < 0 || sizes[i.owner] > sizes[s.items[best].owner]) {
				best = n
			}
		}
		return best
	}
	best := oldest(kindRecording)
	if kind == kindEvent && (best < 0 || sizes[s.items[best].owner] < sizes[owner]) {
		best = oldest(kindEvent)
	}
	if best >= 0 && sizes[s.items[best].owner] < sizes[owner] {
		return -1
	}
	return best
}

func (s *spool) drop(i item, why string) {
	s.lost(i.kind)
	s.log.Warn("dropped: "+why, "what", i.kind, "of", i.owner, "bytes", i.size)
}

// write makes a file whole or not at all.
func (s *spool) write(name string, data []byte) error {
	temp := name + ".tmp"
	if err := s.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = s.root.Rename(temp, name)
	}
	if err != nil {
		_ = s.root.Remove(temp)
	}
	return err
}

func (s *spool) read(i item) ([]byte, error) {
	return s.readFile(i.name(), records.MaxObject+records.MaxBody)
}

// errForeign: the folder may be one that others write to (an emptyDir is), and what they put there is
// neither sent nor waited for.
var errForeign = errors.New("it is not the archiver's own file")

// readFile reads a file that the archiver has written itself.
func (s *spool) readFile(name string, most int64) ([]byte, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	about, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || writtenByOthers(info.Mode().Perm(), about) || int(about.Uid) != os.Geteuid() || about.Nlink != 1 {
		return nil, fmt.Errorf("%s: %w", name, errForeign)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// writtenByOthers reports whether they may write to a file. One of the archiver's own groups may: at each start of a pod
// the kubelet gives the files of a volume to its fsGroup, with the right to write.
func writtenByOthers(mode fs.FileMode, about *syscall.Stat_t) bool {
	groups, _ := os.Getgroups()
	member := int(about.Gid) == os.Getegid() || slices.Contains(groups, int(about.Gid))
	return mode&0o002 != 0 || mode&0o020 != 0 && !member
}

// release lets those who send know that there is more: after the cursor was written, so
// that nothing is sent of which a restart would not know.
func (s *spool) release() {
	s.mu.Lock()
	s.free = s.number
	s.mu.Unlock()
	for _, c := range s.wake {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// first is the oldest of a kind behind a number.
func (s *spool) first(kind string, behind uint64) (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		if i.kind == kind && i.number > behind && i.number <= s.free {
			return i, true
		}
	}
	return item{}, false
}

// each hands out what waits of a kind.
func (s *spool) each(kind string, see func(data []byte)) {
	s.mu.Lock()
	items := slices.Clone(s.items)
	s.mu.Unlock()
	for _, i := range items {
		if i.kind != kind {
			continue
		}
		if data, err := s.read(i); err == nil {
			see(data)
		}
	}
}

// done removes an item that has arrived.
func (s *spool) done(i item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := slices.IndexFunc(s.items, func(o item) bool { return o.number == i.number }); n >= 0 {
		s.remove(n)
	}
}

func (s *spool) remove(n int) {
	if err := s.root.Remove(s.items[n].name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Error("the spool", "err", err)
	}
	s.used -= s.items[n].size
	s.items = slices.Delete(s.items, n, n+1)
}

func (s *spool) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *spool) waiting(kind string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		if i.kind == kind {
			n++
		}
	}
	return n
}
