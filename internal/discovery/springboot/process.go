package springboot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds on what a process can make this package read. A config file, a
// manifest and an argument file are small in real life; one that is not is
// reported, never read to its end.
const (
	maxConfigFile = 4 << 20 // bytes of one config file, uncompressed
	maxConfigSum  = 32 << 20
	maxConfigDocs = 1000
	maxArgFile    = 1 << 20
	maxManifest   = 256 << 10
	maxListing    = 10_000 // entries of a directory or of a class path
)

// Sentinel errors of this package.
var (
	// ErrTooLarge is a file beyond the bound that is read for its kind.
	ErrTooLarge = errors.New("larger than what is read")
	// ErrNotRegular is a fifo, a device or a directory in the place of a file.
	ErrNotRegular = errors.New("not a regular file")
)

// Process is what is known of the JVM from outside. Fields that could not be
// read are empty; Missing says why.
type Process struct {
	Args     []string          // the whole command line, argv[0] first (/proc/PID/cmdline)
	Env      map[string]string // /proc/PID/environ
	EnvKnown bool              // false: environ could not be read, Env says nothing
	Exe      string            // the executable as the process sees it (/proc/PID/exe), or empty
	// Open opens a file as the process sees it: absolute paths below its root,
	// relative ones below its working directory. It must not block on a fifo;
	// for what is no regular file it may answer fs.ErrInvalid.
	Open func(path string) (*os.File, error)
	// ReadDir lists a directory as the process sees it.
	ReadDir func(path string) ([]fs.DirEntry, error)
	// VMArgs is java.rt.vmArgs of the JVM's hsperfdata: every option the VM
	// got, those of JAVA_TOOL_OPTIONS included, joined by spaces.
	VMArgs string
	// JavaVersion is java.property.java.version of hsperfdata, or empty.
	JavaVersion string
	Missing     []model.Unavailable
}

// open opens a regular file of the process.
func (p *Process) open(path string) (*os.File, fs.FileInfo, error) {
	if p.Open == nil {
		return nil, nil, fmt.Errorf("open %q: %w", path, fs.ErrPermission)
	}
	f, err := p.Open(path)
	if errors.Is(err, fs.ErrInvalid) {
		err = fmt.Errorf("%w: %w", ErrNotRegular, err)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q: %w", path, ErrNotRegular)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// read returns the whole of a regular file of at most limit bytes.
func (p *Process) read(path string, limit int64) ([]byte, error) {
	f, info, err := p.open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readBounded(f, path, limit, info.Size())
}

// readBounded reads r to its end, or fails with ErrTooLarge after limit bytes.
// expected is a hint of the size, and no more: it may be a lie.
func readBounded(r io.Reader, name string, limit, expected int64) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(min(max(expected, 0), limit, 64<<10)) + bytes.MinRead)
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	if n > limit {
		return nil, fmt.Errorf("read %q: %w (%d bytes)", name, ErrTooLarge, limit)
	}
	return buf.Bytes(), nil
}

// list returns the entries of a directory, nil when it cannot be listed.
func (p *Process) list(dir string) ([]fs.DirEntry, error) {
	if p.ReadDir == nil {
		return nil, fmt.Errorf("list %q: %w", dir, fs.ErrPermission)
	}
	entries, err := p.ReadDir(dir)
	if len(entries) > maxListing {
		return entries[:maxListing], fmt.Errorf("list %q: %w (%d entries)", dir, ErrTooLarge, maxListing)
	}
	return entries, err
}
