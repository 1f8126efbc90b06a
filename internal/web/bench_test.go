package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// crowd is a snapshot of 100 listeners, ten of them losing clients, at a second.
func crowd(second int) *model.Snapshot {
	var all []model.Listener
	for port := range uint16(100) {
		l := listener(8000+port, model.StatusOK)
		if port < 10 {
			l.Verdict.Status = model.StatusLosing
			l.Verdict.Summary = fmt.Sprintf("%d clients of the last 10 s got no answer.", 30+second%7)
			l.Verdict.Answer = model.Answer{What: l.Verdict.Summary, Why: "All 20 connections are taken.", Do: []model.Step{{Text: "Raise it", Setting: "server.tomcat.threads.max", From: "4", To: "20"}}}
		}
		l.AcceptQueue.Length = second % 3
		all = append(all, l)
	}
	s := snapshotOf(all...)
	s.Time = now.Add(time.Duration(second) * time.Second)
	return s
}

// A second of open pages: a snapshot is published, and each page is sent what it changes.
func BenchmarkOpenPages(b *testing.B) {
	for _, pages := range []int{1, 10} {
		b.Run(fmt.Sprint(pages), func(b *testing.B) {
			var s published
			page, err := New(Options{Snapshot: s.Load, History: incident.NewHistory(), Now: func() time.Time { return now }, Interval: time.Second})
			require.NoError(b, err)
			second := 0
			publish := func() {
				snap := crowd(second)
				second++
				s.Store(snap)
				page.options.History.Observe(snap)
			}
			for range 900 {
				publish()
			}
			var open []*openPage
			for range pages {
				open = append(open, &openPage{server: page, drawing: page.shared(choice{}), turn: func() (func(), bool) { return always(nil) }})
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				publish()
				b.StartTimer()
				for _, o := range open {
					_, err := o.next()
					require.NoError(b, err)
				}
			}
		})
	}
}
