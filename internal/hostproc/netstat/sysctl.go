package netstat

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Sysctls are the kernel settings that bound the queues in front of a
// listener, of the network namespace of the CALLING THREAD: /proc/sys/net
// shows the reader's own whatever path leads there. To read those of another
// namespace, call it from a thread inside. A setting that this kernel or this
// namespace lacks is absent.
//
// The keys are the last part of the sysctl's name, except for those with
// several values: ip_local_port_range_min and _max; tcp_mem_low, _pressure and
// _high (in pages).
func Sysctls(fs hostproc.FS) (map[string]int, error) {
	out := make(map[string]int, 16)
	for _, s := range sysctls() {
		values, err := readSysctl(fs, s.name)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("hostproc: sysctl %q: %w", s.name, err)
		}
		for i, key := range s.keys {
			if i < len(values) {
				out[key] = values[i]
			}
		}
	}
	return out, nil
}

// Forwards reports whether the network namespace passes packets on that are for others (net.ipv4.ip_forward, and
// net.ipv6.conf.all.forwarding); true where that cannot be read.
func Forwards(fs hostproc.FS) (v4, v6 bool) {
	forwards := func(name string) bool {
		values, err := readSysctl(fs, name)
		return err != nil || len(values) != 1 || values[0] != 0
	}
	return forwards("net.ipv4.ip_forward"), forwards("net.ipv6.conf.all.forwarding")
}

// readSysctl reads a setting's numbers. By way of os.File, as procfs does it, each of
// them would be given to the poller, which the kernel then wakes for it.
func readSysctl(fs hostproc.FS, name string) (values []int, err error) {
	data, err := procfile.Read(fs.Sysctl(name), make([]byte, 0, 64))
	if err != nil {
		return nil, err
	}
	for field := range strings.FieldsSeq(string(data)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, hostproc.ErrMalformed
		}
		values = append(values, n)
	}
	return values, nil
}

type sysctl struct {
	name string
	keys []string
}

func sysctls() []sysctl {
	return []sysctl{
		{"net.core.somaxconn", []string{"somaxconn"}},
		{"net.ipv4.tcp_max_syn_backlog", []string{"tcp_max_syn_backlog"}},
		{"net.ipv4.tcp_syncookies", []string{"tcp_syncookies"}},
		{"net.ipv4.tcp_abort_on_overflow", []string{"tcp_abort_on_overflow"}},
		{"net.ipv4.ip_local_port_range", []string{"ip_local_port_range_min", "ip_local_port_range_max"}},
		{"net.ipv4.tcp_tw_reuse", []string{"tcp_tw_reuse"}},
		{"net.ipv4.tcp_tw_reuse_delay", []string{"tcp_tw_reuse_delay"}}, // Linux 6.14
		{"net.ipv4.tcp_timestamps", []string{"tcp_timestamps"}},
		{"net.ipv4.tcp_syn_retries", []string{"tcp_syn_retries"}},
		{"net.ipv4.tcp_synack_retries", []string{"tcp_synack_retries"}},
		{"net.ipv4.tcp_syn_linear_timeouts", []string{"tcp_syn_linear_timeouts"}}, // Linux 6.5
		{"net.ipv4.ip_nonlocal_bind", []string{"ip_nonlocal_bind"}},
		{"net.ipv6.ip_nonlocal_bind", []string{"ipv6_nonlocal_bind"}},
		{"net.ipv4.tcp_migrate_req", []string{"tcp_migrate_req"}}, // Linux 5.14
		{"net.ipv4.tcp_max_tw_buckets", []string{"tcp_max_tw_buckets"}},
		{"net.ipv4.tcp_max_orphans", []string{"tcp_max_orphans"}},            // initial namespace only
		{"net.netfilter.nf_conntrack_count", []string{"nf_conntrack_count"}}, // with the module nf_conntrack
		{"net.netfilter.nf_conntrack_max", []string{"nf_conntrack_max"}},
		{"net.ipv4.tcp_mem", []string{"tcp_mem_low", "tcp_mem_pressure", "tcp_mem_high"}}, // likewise
	}
}
