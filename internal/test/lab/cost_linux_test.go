package lab

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const costHead = `# What tcpdiag run costs a load test

Written by ` + "`make prove PROOF=run-cost`" + `: k6 with 40 clients that make a new connection for each request, with and without
` + "`tcpdiag run`" + ` before it, in alternated pairs on one machine of few processors that has server, k6 and tcpdiag. The
interval is of the mean difference of a pair (95 %, Student's t). A handler takes 50 ms. With one of 5 ms the p99 is
10 ms of which half is what two processors shared by server, k6 and JIT add: it differed by 15 % from run to run with
tcpdiag and without, so that ten pairs said -5.6 ± 11.1 % (requests a second +0.17 ± 0.58 %, 26 November 2026).

`

// TestRunCosts has k6 run with and without tcpdiag before it, one after the other.
func TestRunCosts(t *testing.T) {
	const pairs = 10
	if !rig.Alone(t, 10*time.Minute) {
		return
	}
	c := rig.New(t, nil, "cost")
	b := &scene{Case: c, Artifacts: c.Artifacts()}
	program := k6(c)
	b.roomy(rig.Limits{})
	measure := func(before ...string) (rate, p99 float64) {
		args := append(slices.Clone(before), program, "run", "--no-usage-report", "--quiet", "--address", "",
			"--env", "VUS=40", "--env", "SECONDS=12", "--env", "URL=http://127.0.0.1:8080"+hello(50*time.Millisecond), b.Source("internal/test/lab/k6/steady.js"))
		b.Wait(time.Second)
		out, err := exec.CommandContext(b.Ctx, args[0], args[1:]...).Output()
		b.Must(err)
		var sum struct{ Rate, P99, Failed float64 }
		b.Must(json.Unmarshal(out, &sum))
		b.Holds(sum.Failed == 0, "%.0f requests failed", sum.Failed)
		return sum.Rate, sum.P99
	}
	beside := []string{b.Tcpdiag, "run", "--port", "8080", "--quiet", "--"}
	measure() // what is compiled first is no measure
	measure(beside...)
	var rates, tails []float64
	lines := []string{"| pair | requests/s without | with | | p99 without, ms | with | |", "|---|---|---|---|---|---|---|"}
	for i := range pairs {
		var rate, p99 [2]float64 // without, with
		for k := range 2 {
			if with := (i + k) % 2; with == 1 {
				rate[1], p99[1] = measure(beside...)
			} else {
				rate[0], p99[0] = measure()
			}
		}
		rates, tails = append(rates, 100*(rate[1]/rate[0]-1)), append(tails, 100*(p99[1]/p99[0]-1))
		lines = append(lines, fmt.Sprintf("| %d | %.1f | %.1f | %+.2f %% | %.2f | %.2f | %+.1f %% |", i+1, rate[0], rate[1], rates[i], p99[0], p99[1], tails[i]))
	}
	rate, rateError := loadtest.MeanError(rates)
	tail, tailError := loadtest.MeanError(tails)
	lines = append(lines, "", fmt.Sprintf("Requests a second %+.2f ± %.2f %%, p99 %+.1f ± %.1f %%.", rate, rateError, tail, tailError))
	t.Log("\n" + strings.Join(lines, "\n"))
	rig.Record(t, "docs/results/run-cost.md", costHead+strings.Join(lines, "\n")+"\n")
	b.Holds(math.Abs(rate)+rateError <= 1, "requests a second: %+.2f ± %.2f %%", rate, rateError)
	b.Holds(math.Abs(tail)+tailError <= 3, "p99: %+.1f ± %.1f %%", tail, tailError)
}
