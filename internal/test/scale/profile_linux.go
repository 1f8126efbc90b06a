package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// startAgent starts the program that is measured.
func (s *scale) startAgent(ctx context.Context, flags ...string) (*rig.Agent, error) {
	if s.Profiles != "" {
		flags = append(flags, "--web.enable-pprof")
	}
	return rig.StartAgent(ctx, s.Tcpdiag, flags...)
}

// profile takes profiles of the agent over the time that is measured, if they are
// wanted, until the answer is called. What cannot be had is said: no measurement depends on it.
func (s *scale) profile(ctx context.Context, agent *rig.Agent, during time.Duration) (end func()) {
	if s.Profiles == "" {
		return func() {}
	}
	s.profiled++
	prefix := filepath.Join(s.Profiles, fmt.Sprintf("%02d-", s.profiled))
	save := func(name string, content []byte, err error) {
		if err == nil {
			err = os.WriteFile(prefix+name, content, 0o600)
		}
		if err != nil {
			fmt.Println("   no profile:", err)
		}
	}
	profiler := *agent
	profiler.Patience(2 * during)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cpu, err := profiler.Get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", max(during-time.Second, time.Second).Seconds()))
		save("cpu.pprof", cpu, err)
	}()
	return func() {
		<-done
		heap, err := profiler.Get(ctx, "/debug/pprof/heap")
		save("heap.pprof", heap, err)
		smaps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", agent.Process.Pid))
		save("smaps.txt", smaps, err)
	}
}
