package hostproc_test

import (
	"os"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
)

// What a scan costs for each process and namespace.
func BenchmarkScan(b *testing.B) {
	fs, err := hostproc.NewFS("/proc")
	if err != nil {
		b.Fatal(err)
	}
	pid := os.Getpid()
	file, err := netstat.OpenListenCounters(fs, pid)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	kept, err := netstat.OpenNetCounters(fs, pid)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	sockstat, err := netstat.OpenSockstat(fs, pid)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sockstat.Close() }()
	delays := threads.NewRunDelayCounter(fs, pid, &threads.Load{})
	counters := map[string]uint64{}
	for name, read := range map[string]func() error{
		"ListenCounters":  func() error { return file.Read(&netstat.ListenCounters{}) },
		"NetCountersFile": func() error { return kept.Read(counters) },
		"Sockstat":        func() error { _, err := sockstat.Read(); return err },
		"Sysctls":         func() error { _, err := netstat.Sysctls(fs); return err },
		"Process":         func() error { _, err := fs.Process(pid); return err },
		"OpenFiles":       func() error { _, err := openfiles.Count(fs, pid); return err },
		"OpenFilesLimit":  func() error { _, err := openfiles.Limit(fs, pid); return err },
		"Cgroup":          func() error { _, err := cgroup.Of(fs, pid); return err },
		"ThreadNames":     func() error { return fs.ThreadNames(pid, func(int, string) {}) },
		"RunDelay":        func() error { _, err := delays.Read(time.Now()); return err },
		"SocketInodes":    func() error { return fs.SocketInodes(pid, func(uint32) {}) },
		"SampleSocketInodes": func() error {
			_, err := openfiles.SubsetOfSockets(fs, pid, 256, func(uint32) {})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
