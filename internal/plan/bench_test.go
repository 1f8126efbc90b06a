package plan

import (
	"testing"
	"time"
)

// BenchmarkPlan plans 100,000 requests, search included.
func BenchmarkPlan(b *testing.B) {
	burst := tomcatBurst(100_000, func(in *Input) { in.ConnectTimeout = 0; in.ClientTimeout = 10 * time.Minute })
	open := tomcatBurst(0, func(in *Input) {
		in.Rate, in.Duration = 1000, 100*time.Second
		in.ServiceTime = 300 * time.Millisecond
		in.ConnectTimeout = 5 * time.Second
		in.ClientTimeout = 5 * time.Second
	})
	open.Requests = 0
	patient := burst
	patient.ClientTimeout = 0
	for name, in := range map[string]Input{"burst": burst, "open loop": open, "patient burst": patient} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := New(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
