package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// throttle lets a process have that share of one CPU, by a cgroup of its own
// (cpu.cfs_quota_us of version 1, cpu.max of version 2).
func throttle(pid int, share float64) error {
	const period = 100 * time.Millisecond
	quota := int64(share * float64(period.Microseconds()))
	group := os.Getenv(groupEnv)
	var errs []error
	for _, try := range []struct{ root, file, value string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", strconv.FormatInt(quota, 10)},
		{"/sys/fs/cgroup", "cpu.max", fmt.Sprintf("%d %d", quota, period.Microseconds())},
	} {
		dir := filepath.Join(try.root, group)
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, try.file), []byte(try.value), 0o644)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeGroup waits for the last process to exit.
func removeGroup(group string) {
	for _, root := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"} {
		for range 50 {
			if err := os.Remove(filepath.Join(root, group)); err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// limitFiles changes how many files a running process may open.
func limitFiles(pid int, most uint64) error {
	limit := unix.Rlimit{Cur: most, Max: most}
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
}
