package netstat

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// ConntrackFile keeps the counters of a network namespace's connection tracking open.
type ConntrackFile struct{ file *procfile.Shared }

// OpenConntrack opens /proc/PID/net/stat/nf_conntrack, which any user may read. It is not
// there without the module, nor on kernels without CONFIG_NF_CONNTRACK_PROCFS.
func OpenConntrack(fs hostproc.FS, pid int) (*ConntrackFile, error) {
	file, err := share(fs, pid, "stat/nf_conntrack")
	if err != nil {
		return nil, fs.Wrap(pid, "net/stat/nf_conntrack", err)
	}
	return &ConntrackFile{file}, nil
}

// conntrackCounters are the columns that say that a packet was lost (ct_cpu_seq_show): drop
// counts all of them, the others why, where it was not that the table is full. The column
// chainlength is chaintoolong since Linux 5.15.
func conntrackCounters() map[string]string {
	return map[string]string{
		"drop": "nf_conntrack_drop", "early_drop": "nf_conntrack_early_drop",
		"insert_failed": "nf_conntrack_insert_failed", "chainlength": "nf_conntrack_chaintoolong",
	}
}

// Read adds the sums over all processors to out.
func (f *ConntrackFile) Read(out map[string]uint64) error {
	return f.file.Read(func(data []byte) error {
		if err := parseConntrack(data, out); err != nil {
			return fmt.Errorf("hostproc: %s: %w", f.file.Name(), err)
		}
		return nil
	})
}

// Close lets the namespace go.
func (f *ConntrackFile) Close() error { return f.file.Close() }

// parseConntrack reads a line of names and one of hexadecimal values for each processor.
func parseConntrack(data []byte, out map[string]uint64) error {
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	names := bytes.Fields(head)
	for column, name := range conntrackCounters() {
		at := slices.IndexFunc(names, func(n []byte) bool { return string(n) == column })
		if at < 0 {
			continue
		}
		var sum uint64
		for line := range bytes.Lines(rest) {
			fields := bytes.Fields(line)
			if at >= len(fields) {
				return hostproc.ErrMalformed
			}
			n, err := strconv.ParseUint(string(fields[at]), 16, 64)
			if err != nil {
				return hostproc.ErrMalformed
			}
			sum += n
		}
		out[name] = sum
	}
	return nil
}
