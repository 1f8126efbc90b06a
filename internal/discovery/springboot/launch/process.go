package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds on what one process can make this package read. An application in real life
// stays below a tenth of each. What is beyond one is said once, without its text, and
// everything else continues.
const (
	maxArgFile = 256 << 10
	maxRelease = 256 << 10 // bytes of a JDK's release file
	maxListing = 10_000    // entries of a directory
	maxOpens   = 5_000     // files and directories opened
	maxWords   = 20_000    // argument files expanded
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

	opens int // files and directories opened so far
}

// errOpens is a process whose configuration leads to more files than are opened.
var errOpens = bounded.TooLarge("more than 5,000 files and directories")

// admit counts what is opened.
func (p *Process) admit() error {
	if p.opens++; p.opens > maxOpens {
		return errOpens
	}
	return nil
}

// OpenFile opens a regular file of the process.
func (p *Process) OpenFile(path string) (*os.File, fs.FileInfo, error) {
	if p.Open == nil {
		return nil, nil, fmt.Errorf("open %q: %w", path, fs.ErrPermission)
	}
	if err := p.admit(); err != nil {
		return nil, nil, err
	}
	f, err := p.Open(path)
	if errors.Is(err, fs.ErrInvalid) {
		err = fmt.Errorf("%w: %w", bounded.ErrNotRegular, err)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q: %w", path, bounded.ErrNotRegular)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Read returns the whole of a regular file of at most limit bytes.
func (p *Process) Read(path string, limit int64) ([]byte, error) {
	f, info, err := p.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return bounded.Read(f, path, limit, info.Size())
}

// List returns the entries of a directory, nil when it cannot be listed.
func (p *Process) List(dir string) ([]fs.DirEntry, error) {
	if p.ReadDir == nil {
		return nil, fmt.Errorf("list %q: %w", dir, fs.ErrPermission)
	}
	if err := p.admit(); err != nil {
		return nil, err
	}
	entries, err := p.ReadDir(dir)
	if len(entries) > maxListing {
		return entries[:maxListing], fmt.Errorf("list %q: %w (%d entries)", dir, bounded.ErrTooLarge, maxListing)
	}
	return entries, err
}

// Reason is an error in the words of an Unavailable.
func Reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	}
	return err.Error()
}
