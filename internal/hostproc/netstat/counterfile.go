package netstat

import (
	"bytes"
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
	opened, err := share(fs, pid, file)
	if err != nil {
		return nil, fs.Wrap(pid, "net/"+file, err)
	}
	f := &counterFile{file: opened, protocol: protocol, names: names, values: make([]uint64, len(names))}
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

// columns says where the wanted counters are in a file of the form of
// net/netstat and net/snmp: for each protocol a line of names and below it a
// line of values.
type columns struct {
	prefix []byte // "TcpExt:", with which both lines start
	names  []byte // the line of names
	index  []int  // per wanted name its column, -1 when this kernel lacks it
	last   int    // the highest column wanted
}

// findColumns finds the wanted names of a protocol. That the protocol has no
// lines at all is an error; that a name is missing is not.
func findColumns(file []byte, protocol string, names []string) (*columns, error) {
	c := &columns{prefix: []byte(protocol + ":"), index: make([]int, len(names)), last: -1}
	line := procfile.LineOf(file, c.prefix)
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		return nil, fmt.Errorf("no lines of %q: %w", protocol, hostproc.ErrMalformed)
	}
	c.names = bytes.Clone(line[:end+1])
	c.locate(bytes.Fields(line[len(c.prefix):end]), names)
	return c, nil
}

func (c *columns) locate(fields [][]byte, names []string) {
	for i, name := range names {
		c.index[i] = -1
		for col, field := range fields {
			if string(field) == name {
				c.index[i] = col
				c.last = max(c.last, col)
			}
		}
	}
}

func (c *columns) has(i int) bool { return c.index[i] >= 0 }

// read puts the wanted counters' values into out, which is as long as the
// wanted names; those that are missing become 0. It allocates nothing unless
// it fails.
func (c *columns) read(file []byte, out []uint64) error {
	values, err := c.valueLine(file)
	if err != nil {
		return err
	}
	clear(out)
	for col := 0; col <= c.last; col++ {
		field := bytes.TrimLeft(values, " ")
		end := bytes.IndexByte(field, ' ')
		if end < 0 {
			end = len(field)
		}
		values = field[end:]
		if err := c.set(out, col, field[:end]); err != nil {
			return err
		}
	}
	return nil
}

// set keeps a wanted column; the others may be anything (MaxConn is -1).
func (c *columns) set(out []uint64, col int, field []byte) error {
	for i, want := range c.index {
		if want != col {
			continue
		}
		v, rest, ok := procfile.NextNumber(field)
		if !ok || len(rest) > 0 {
			return fmt.Errorf("%q has %q in column %d: %w", c.prefix, field, col, hostproc.ErrMalformed)
		}
		out[i] = v
	}
	return nil
}

// valueLine checks that the names are still those that were found: they never
// change while a kernel runs.
func (c *columns) valueLine(file []byte) ([]byte, error) {
	line, ok := bytes.CutPrefix(procfile.LineOf(file, c.prefix), c.names)
	if !ok {
		return nil, fmt.Errorf("the names of %q changed: %w", c.prefix, hostproc.ErrMalformed)
	}
	line, ok = bytes.CutPrefix(line, c.prefix)
	if !ok {
		return nil, fmt.Errorf("no values of %q: %w", c.prefix, hostproc.ErrMalformed)
	}
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	return line, nil
}
