package hostproc

import (
	"bytes"
	"fmt"
)

// columns says where the wanted counters stand in a file of the form of
// net/netstat and net/snmp: for each protocol a line of names and below it a
// line of values.
type columns struct {
	header []byte // the file's bytes up to and including the names' line
	prefix []byte // "TcpExt:", which starts the line of values too
	index  []int  // per wanted name its column, -1 when this kernel lacks it
	last   int    // the highest column wanted
}

// findColumns finds the wanted names of a protocol. That the protocol has no
// lines at all is an error; that a name is missing is not.
func findColumns(file []byte, protocol string, names []string) (*columns, error) {
	prefix := []byte(protocol + ":")
	start := 0
	for start < len(file) && !bytes.HasPrefix(file[start:], prefix) {
		next := bytes.IndexByte(file[start:], '\n')
		if next < 0 {
			break
		}
		start += next + 1
	}
	if start >= len(file) || !bytes.HasPrefix(file[start:], prefix) {
		return nil, fmt.Errorf("no %q line: %w", protocol, ErrMalformed)
	}
	length := bytes.IndexByte(file[start:], '\n')
	if length < 0 {
		return nil, fmt.Errorf("%q line without values: %w", protocol, ErrMalformed)
	}
	end := start + length
	c := &columns{header: bytes.Clone(file[:end+1]), prefix: prefix, index: make([]int, len(names)), last: -1}
	c.locate(bytes.Fields(file[start+len(prefix):end]), names)
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
// it fails. The names never change while a kernel runs, but the lines above
// do (they carry values), so only the names' own line is compared.
func (c *columns) read(file []byte, out []uint64) error {
	values, err := c.valueLine(file)
	if err != nil {
		return err
	}
	clear(out)
	for col := 0; col <= c.last; col++ {
		var v uint64
		var ok bool
		v, values, ok = nextNumber(values)
		if !ok {
			return fmt.Errorf("%q has no number in column %d: %w", c.prefix, col, ErrMalformed)
		}
		for i, want := range c.index {
			if want == col {
				out[i] = v
			}
		}
	}
	return nil
}

func (c *columns) valueLine(file []byte) ([]byte, error) {
	if len(file) < len(c.header) || !bytes.Equal(file[:len(c.header)], c.header) {
		return nil, fmt.Errorf("the names changed: %w", ErrMalformed)
	}
	line := file[len(c.header):]
	if !bytes.HasPrefix(line, c.prefix) {
		return nil, fmt.Errorf("no values for %q: %w", c.prefix, ErrMalformed)
	}
	line = line[len(c.prefix):]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	return line, nil
}

// nextNumber reads one decimal number after any spaces. Numbers that do not
// fit wrap, as the kernel's own counters do.
func nextNumber(b []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && b[i] == ' ' {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	if i == start || i < len(b) && b[i] != ' ' {
		return 0, b, false
	}
	return v, b[i:], true
}
