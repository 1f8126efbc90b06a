package proctest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// MappedFile is a file of a FUSE file system, as any user can make one. It answers
// until it is silenced: whoever reads memory that is mapped from it then waits, and cannot
// be killed.
type MappedFile struct {
	Path    string
	content []byte
	device  int
	silent  atomic.Bool
}

// Requests of FUSE (linux/fuse.h).
const (
	fuseLookup  = 1
	fuseForget  = 2
	fuseGetattr = 3
	fuseOpen    = 14
	fuseRead    = 15
	fuseRelease = 18
	fuseFlush   = 25
	fuseInit    = 26

	fuseInvalidate = 2 // a notification
	fuseNode       = 2 // the one file's
)

// NewMappedFile mounts one of a page's size that begins with the content. It ends with the test.
func NewMappedFile(t testing.TB, content []byte) *MappedFile {
	t.Helper()
	NeedRoot(t)
	dev, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("/dev/fuse: %v", err)
	}
	dir, err := os.MkdirTemp("", "mapped")
	require.NoError(t, err)
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", dev)
	if err := unix.Mount("mapped", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(dev)
		_ = os.Remove(dir)
		t.Skipf("mount of FUSE: %v", err)
	}
	f := &MappedFile{Path: filepath.Join(dir, "memory"), content: content, device: dev}
	t.Cleanup(f.End)
	go f.serve()
	return f
}

// End ends the file system: every waiter gets an error.
func (f *MappedFile) End() {
	dir := filepath.Dir(f.Path)
	_ = unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH)
	_ = os.Remove(dir)
}

// Silence has the kernel forget what it has of the file, and answers no reader any more.
func (f *MappedFile) Silence(t testing.TB) {
	t.Helper()
	f.silent.Store(true)
	body := binary.NativeEndian.AppendUint64(nil, fuseNode)
	body = binary.NativeEndian.AppendUint64(body, 0) // all of it
	body = binary.NativeEndian.AppendUint64(body, 0)
	require.NoError(t, f.send(fuseInvalidate, 0, body))
}

func (f *MappedFile) send(code int32, unique uint64, body []byte) error {
	out := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	out = binary.NativeEndian.AppendUint32(out, uint32(code))
	out = binary.NativeEndian.AppendUint64(out, unique)
	_, err := unix.Write(f.device, append(out, body...))
	return err
}

func (f *MappedFile) serve() {
	defer func() { _ = unix.Close(f.device) }()
	buf := make([]byte, 256<<10)
	for {
		_, err := unix.Read(f.device, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return // it is unmounted
		}
		opcode, unique, node := binary.NativeEndian.Uint32(buf[4:]), binary.NativeEndian.Uint64(buf[8:]), binary.NativeEndian.Uint64(buf[16:])
		if opcode == fuseForget || opcode == fuseRead && f.silent.Load() {
			continue
		}
		body, code := f.reply(opcode, node)
		_ = f.send(code, unique, body)
	}
}

func (f *MappedFile) reply(opcode uint32, node uint64) (body []byte, code int32) {
	words := func(list ...uint64) {
		for _, w := range list {
			body = binary.NativeEndian.AppendUint64(body, w)
		}
	}
	switch opcode {
	case fuseInit:
		body = make([]byte, 64)
		for at, w := range map[int]uint32{0: 7, 4: 31, 20: 4096} { // major, minor, max_write
			binary.NativeEndian.PutUint32(body[at:], w)
		}
	case fuseLookup:
		words(fuseNode, 0, 3600, 3600, 0)
		body = append(body, attributes(fuseNode)...)
	case fuseGetattr:
		words(3600, 0)
		body = append(body, attributes(node)...)
	case fuseOpen:
		words(0, 0)
	case fuseRead:
		body = append(body, f.content...)
		body = append(body, make([]byte, os.Getpagesize()-len(body))...)
	case fuseRelease, fuseFlush:
	default:
		return nil, -int32(unix.ENOSYS)
	}
	return body, 0
}

// attributes is struct fuse_attr.
func attributes(node uint64) []byte {
	mode := uint32(unix.S_IFDIR | 0o755)
	if node == fuseNode {
		mode = unix.S_IFREG | 0o666
	}
	out := make([]byte, 88)
	binary.NativeEndian.PutUint64(out, node)
	binary.NativeEndian.PutUint64(out[8:], uint64(os.Getpagesize()))
	binary.NativeEndian.PutUint32(out[60:], mode)
	binary.NativeEndian.PutUint32(out[64:], 1)
	return out
}
