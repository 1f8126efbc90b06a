package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/ask"
	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// atOnce is how many pods are asked at a time.
const atOnce = 8

// result is one pod's answer.
type result struct {
	pod      *core.Pod
	source   *ask.Source
	snapshot *api.Snapshot
	err      error
}

// open asks each pod for the first time.
func open(ctx context.Context, asker *ask.Asker, pods []core.Pod) []result {
	results := make([]result, len(pods))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range pods {
		g.Go(func() error {
			r := &results[i]
			r.pod = &pods[i]
			if r.source, r.snapshot, r.err = asker.Open(ctx, r.pod); r.err == nil && len(r.snapshot.Listeners) == 0 {
				r.err = asker.Nothing(r.source)
			}
			return nil
		})
	}
	_ = g.Wait()
	return results
}

// again asks those that have answered before.
func again(ctx context.Context, results []result) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range results {
		if r := &results[i]; r.source != nil {
			g.Go(func() error {
				r.snapshot, r.err = r.source.Snapshot(ctx)
				return nil
			})
		}
	}
	_ = g.Wait()
}

// answered is how many have.
func answered(results []result) (n int) {
	for i := range results {
		if results[i].err == nil {
			n++
		}
	}
	return n
}

// waysInLines is up to how many pods each has a line of its own.
const waysInLines = 5

// sayWays says which way was taken, and what could not be seen on it.
func sayWays(w io.Writer, results []result) {
	counts := map[kube.Way]int{}
	for i := range results {
		r := &results[i]
		if r.err != nil {
			continue
		}
		counts[r.source.Way]++
	}
	if n := answered(results); n > waysInLines {
		var parts []string
		for _, way := range kube.Ways() {
			if n := counts[way]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d by %s", n, way))
			}
		}
		fmt.Fprintf(w, "tcpdiag: %d pods asked: %s\n", n, strings.Join(parts, ", "))
		return
	}
	for i := range results {
		r := &results[i]
		if r.err != nil {
			continue
		}
		line := fmt.Sprintf("tcpdiag: %s/%s by %s", r.pod.Namespace, r.pod.Name, r.source.By)
		if missed := ask.Unseen(r.snapshot, r.source); len(missed) > 0 {
			line += "; not seen: " + strings.Join(missed, ", ")
		}
		fmt.Fprintln(w, line)
	}
}

// failures prints what went wrong, each reason once; nil where nothing did.
func failures(w io.Writer, results []result) error {
	n := 0
	var said []string
	for i := range results {
		if err := results[i].err; err != nil {
			n++
			if text := err.Error(); !slices.Contains(said, text) && len(said) < waysInLines {
				said = append(said, text)
				complain(w, err)
			}
		}
	}
	if n == 0 {
		return nil
	}
	if n > len(said) {
		fmt.Fprintf(w, "tcpdiag: %d pods could not be asked\n", n)
	}
	return &reported{n}
}

// worstOf is the worst status of all.
func worstOf(results []result) model.Status {
	worst := model.StatusOK
	for i := range results {
		if s := results[i].snapshot; s != nil && results[i].err == nil {
			for j := range s.Listeners {
				worst = max(worst, api.StatusNamed(s.Listeners[j].Verdict.Status))
			}
		}
	}
	return worst
}
