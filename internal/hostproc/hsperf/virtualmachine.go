package hsperf

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// VirtualMachine is whose Java a process runs.
type VirtualMachine int

// The virtual machines, by the libraries that a process has mapped. A program of
// GraalVM's native-image has neither.
const (
	NoVirtualMachine VirtualMachine = iota
	HotSpot                         // libjvm.so
	OpenJ9                          // libj9vm29.so, beside a libjvm.so that leads to it
)

// maxMaps bounds the list of mappings; vm.max_map_count is 65,530.
const maxMaps = 16 << 20

// VirtualMachineOf reads /proc/PID/maps.
func VirtualMachineOf(fs hostproc.FS, pid int) (VirtualMachine, error) {
	maps, err := os.Open(fs.Path(pid, "maps"))
	if err != nil {
		return NoVirtualMachine, fs.Wrap(pid, "maps", err)
	}
	defer func() { _ = maps.Close() }()
	vm, err := virtualMachine(io.LimitReader(maps, maxMaps))
	return vm, fs.Wrap(pid, "maps", err)
}

func virtualMachine(maps io.Reader) (VirtualMachine, error) {
	vm := NoVirtualMachine
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		_, path, _ := bytes.Cut(lines.Bytes(), []byte{'/'})
		name := path[bytes.LastIndexByte(path, '/')+1:]
		switch {
		case bytes.HasPrefix(name, []byte("libj9vm")):
			return OpenJ9, nil
		case string(name) == "libjvm.so":
			vm = HotSpot
		}
	}
	return vm, lines.Err()
}
