package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releasePages gives back the pages of the program file that are mapped. A page
// fault maps the 15 pages around it as well (fault_around_bytes), so that after a
// minute nearly all of the file is resident, most of it read at the start only.
// The next use of a page maps it again from the page cache.
//
// Only mappings that nobody can write and of which no page was changed (smaps'
// Anonymous, which a breakpoint or a relocation makes): a changed page would be lost.
func releasePages() error {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	for _, m := range unchanged(smaps, program) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unchanged are the mappings of a file in an smaps that are as the file is.
func unchanged(smaps []byte, file string) (out []mapping) {
	var m mapping
	var ours bool
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasSuffix(line, " "+file) { // the head of a mapping, "start-end permissions … file"
			var permissions string
			n, _ := fmt.Sscanf(line, "%x-%x %s", &m.start, &m.end, &permissions)
			ours = n == 3 && permissions[1] == '-'
			continue
		}
		kilobytes, ok := strings.CutPrefix(line, "Anonymous:")
		if ok && ours && strings.TrimSpace(kilobytes) == "0 kB" {
			out = append(out, m)
		}
		ours = ours && !ok // there is one such line a mapping
	}
	return out
}
