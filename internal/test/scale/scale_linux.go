package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// scale is the state of a run.
type scale struct {
	options
	report   report
	profiled int // times
}

// measure runs the scenarios one after the other; each cleans up behind itself.
func measure(ctx context.Context, o options) error {
	if err := furnish(); err != nil {
		return err
	}
	s := &scale{options: o}
	s.report.begin(o)
	for _, scenario := range []struct {
		name, title string
		do          func(context.Context) error
	}{
		{"H1", "a node with many sockets and namespaces", s.node},
		{"H2", "a namespace with a million socket ends", s.million},
		{"H4", "a stranger's short-lived listener", s.stranger},
		{"H5", "a busy machine", s.busy},
		{"H6", "a file system that does not answer", s.hung},
	} {
		if !o.wanted(scenario.name) {
			continue
		}
		start := time.Now()
		fmt.Printf("%s: %s\n", scenario.name, scenario.title)
		if err := scenario.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", scenario.name, err)
		}
		fmt.Printf("%s took %.0f s\n", scenario.name, time.Since(start).Seconds())
	}
	return s.write()
}

// furnish makes the fresh namespaces usable.
func furnish() error {
	if err := rig.Furnish(); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("10000 65535"), 0o600),
		os.WriteFile("/proc/sys/net/core/somaxconn", []byte("65535"), 0o600),
	)
}

func (s *scale) write() error {
	if err := os.MkdirAll(s.Out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(s.Out, "scale.md")
	s.report.end()
	fmt.Print(s.report.table())
	fmt.Println("wrote", path)
	return os.WriteFile(path, []byte(s.report.markdown()), 0o644)
}
