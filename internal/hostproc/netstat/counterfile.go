package netstat

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// counterFile keeps a file of the form of net/netstat open and reads some
// counters of one protocol from it, without allocating.
type counterFile struct {
	file     *procfile.Shared
	protocol string
	names    []string
	cols     *columns
	values   []uint64 // of names, in their order
}

func share(fs hostproc.FS, pid int, file string) (*procfile.Shared, error) {
	return fs.Share(fs.Path(pid, "net", file))
}

func openCounters(fs hostproc.FS, pid int, file, protocol string, names []string) (*counterFile, error) {
	kept, err := share(fs, pid, file)
	if err != nil {
		return nil, fs.Wrap(pid, "net/"+file, err)
	}
	f := &counterFile{file: kept, protocol: protocol, names: names, values: make([]uint64, len(names))}
	if err := f.read(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Close closes the file.
func (f *counterFile) Close() error { return f.file.Close() }

// read fills values; on an error they are not to be used.
func (f *counterFile) read() error { return f.file.Read(f.parse) }

func (f *counterFile) parse(data []byte) (err error) {
	if f.cols != nil && f.cols.read(data, f.values) == nil {
		return nil
	}
	if f.cols, err = findColumns(data, f.protocol, f.names); err == nil {
		err = f.cols.read(data, f.values)
	}
	if err != nil {
		return fmt.Errorf("hostproc: %s: %w", f.file.Name(), err)
	}
	return nil
}
