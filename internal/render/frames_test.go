package render_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/watch"
)

// filling are the snapshots of a burst: the threads first, then the connections, then
// the queue, and then it drops.
func filling() []*model.Snapshot {
	var out []*model.Snapshot
	for i := range 24 {
		s := okIdle()
		if i >= 16 {
			s = overload()
		}
		l := &s.Listeners[0]
		s.Time = at().Add(time.Duration(i) * time.Second)
		l.AcceptQueue.Recent = min(max(0, i-13)*20, 101)
		if i < 16 {
			l.Connections.Accepted = i * 540
			l.Connections.Phases = [model.NumPhases]int{model.InService: min(i*30, 200), model.Waiting: max(0, i*540-200)}
			l.Limits[2].Used = min(i*30, 200)
		}
		l.Totals.Dropped = map[model.DropKey]uint64{{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}: uint64(max(0, i-18) * max(0, i-18) * 40)}
		out = append(out, s)
	}
	return out
}

func framesOf(width, height int, looks ...*model.Snapshot) *watch.Frames {
	f := watch.NewFrames(time.Second)
	f.Resize(render.TextOptions{Width: width}, height)
	for _, look := range looks {
		f.Add(look)
	}
	return f
}

func TestFramesGolden(t *testing.T) {
	checkGolden(t, "watch_overload_100.txt", []byte(framesOf(100, 44, filling()...).View()+"\n"))
	checkGolden(t, "watch_many_80.txt", []byte(framesOf(80, 24, machine(8)).View()+"\n"))
	checkGolden(t, "watch_down_80.txt", []byte(framesOf(80, 24, filling()[0], down()).View()+"\n"))
}

// Who looks when the server is down wants to see what led there.
func TestFramesKeepThePastOfAPortThatIsDown(t *testing.T) {
	looks := filling()
	last := looks[len(looks)-1]
	fell := func(port uint16, ns uint64) string {
		gone := snapshotOf(down().Listeners[0])
		gone.Time = last.Time.Add(time.Second)
		gone.Listeners[0].Losses = &model.Losses{}
		gone.Listeners[0].Port, gone.Listeners[0].ID.NetNS = port, ns
		return framesOf(100, 44, append(slices.Clone(looks), gone)...).View()
	}
	const scale = "now╵"
	id := last.Listeners[0].ID
	chart := fell(id.Address.Port(), id.NetNS)
	require.Contains(t, chart, "DOWN")
	require.Contains(t, chart, scale)
	require.Regexp(t, `accept queue .*█ +101\n`, chart)
	require.Regexp(t, scale+` +peak\n\n +lost `, chart)
	require.NotContains(t, fell(id.Address.Port(), id.NetNS+1), scale, "another namespace's")
	require.NotContains(t, fell(id.Address.Port()+1, id.NetNS), scale)
}

func TestFramesScaleIsTheTimeThatPassed(t *testing.T) {
	var looks []*model.Snapshot
	for i := range 100 {
		s := okIdle()
		s.Time = at().Add(time.Duration(i) * 1500 * time.Millisecond)
		looks = append(looks, s)
	}
	require.Contains(t, framesOf(100, 44, looks...).View(), "╵108 s ago")
}

func TestFramesFillTheirScreen(t *testing.T) {
	for name, s := range scenarios() {
		for _, height := range []int{1, 2, 5, 24, 100} {
			f := framesOf(80, height, s)
			for _, turn := range []func(){func() {}, func() { f.Select(1) }, func() { f.Scroll(7) }, f.Pause} {
				turn()
				lines := strings.Split(f.View(), "\n")
				require.Len(t, lines, height, "%s", name)
				for _, line := range lines {
					require.LessOrEqual(t, lipgloss.Width(line), 80, "%s: %q", name, line)
				}
			}
		}
	}
}

func TestFramesBeforeThereIsAnything(t *testing.T) {
	f := watch.NewFrames(time.Second)
	f.Select(1)
	f.Pause()
	f.Scroll(3)
	f.Follow()
	require.Empty(t, f.View())
	f.Resize(render.TextOptions{}, 24)
	require.Empty(t, f.View())
	f.Add(snapshotOf())
	require.Contains(t, f.View(), "Nothing listens here.")
}

func TestFramesShowTheWorstUntilOneIsChosen(t *testing.T) {
	const marked = "▸"
	line := func(f *watch.Frames) string {
		for line := range strings.Lines(f.View()) {
			if strings.Contains(line, marked) {
				return line
			}
		}
		return ""
	}
	quiet, busy := machine(3), machine(3)
	for i := range quiet.Listeners {
		quiet.Listeners[i].Verdict.Status = model.StatusOK
	}
	f := framesOf(100, 40, quiet)
	first := line(f)
	f.Add(busy)
	require.Contains(t, line(f), "losing")
	require.NotEqual(t, first, line(f))

	f.Select(1)
	chosen := strings.Fields(line(f))[1]
	f.Add(quiet)
	require.Contains(t, line(f), chosen, "it stays")
	for range quiet.Listeners {
		f.Select(-1)
	}
	require.Contains(t, line(f), chosen, "once round")
	f.Follow()
	require.Equal(t, first, line(f))

	f.Select(1)
	f.Add(okIdle())
	require.Contains(t, f.View(), ":8080", "the chosen one is gone")
}

func TestFramesPause(t *testing.T) {
	looks := filling()
	f := framesOf(100, 40, looks[:20]...)
	before := f.View()
	f.Pause()
	held := f.View()
	for _, look := range looks[20:] {
		f.Add(look)
	}
	require.Equal(t, held, f.View())
	require.Contains(t, held, "PAUSED")
	f.Pause()
	require.NotContains(t, f.View(), "PAUSED")
	require.NotEqual(t, before, f.View(), "what came meanwhile is there")
	require.Equal(t, framesOf(100, 40, looks...).View(), f.View())
}

func TestFramesScrollWithinTheText(t *testing.T) {
	f := framesOf(80, 24, overload())
	top := f.View()
	f.Scroll(-5)
	require.Equal(t, top, f.View())
	require.Contains(t, top, " more)")
	f.Scroll(1000)
	bottom := f.View()
	require.NotContains(t, bottom, "more)")
	f.Scroll(1)
	require.Equal(t, bottom, f.View())
	f.Scroll(-1)
	require.Contains(t, f.View(), "(1 more)", "it has not gone past the end")
}

func TestFramesEnd(t *testing.T) {
	looks := filling()
	for _, look := range looks {
		quiet := tomcat("[::]:9000")
		look.Listeners = append(look.Listeners, quiet)
	}
	last := &looks[len(looks)-1].Listeners[0].Totals
	last.FullSeconds, last.AbandonedRequests, last.QueueResets = 4.2, 3, 1
	var b bytes.Buffer
	require.NoError(t, framesOf(100, 40, looks...).End(&b))
	require.Contains(t, b.String(), "LOSING CLIENTS  [::]:8080  max_connections")
	require.Contains(t, b.String(), "At 03:00:28: ")
	require.Contains(t, b.String(), "Since the start: 1,000 packets dropped, about 3 requests abandoned, 1 queued connection reset, the\n  accept queue full for 4.2 s.")
	require.Contains(t, b.String(), "1 listener was ok all the time.")
	require.NotContains(t, b.String(), "9000")

	turned := &model.ClientTotals{}
	turned.Outcomes[model.ClientGaveUp], turned.Outcomes[model.ClientDelayed] = 400, 1
	last.Clients = turned
	b.Reset()
	require.NoError(t, framesOf(100, 40, looks...).End(&b))
	require.Contains(t, b.String(), "Since the start: 400 clients turned away, 1 client let in late, ")
	for _, look := range looks {
		look.Listeners[0].Losses.Clients = &model.Clients{Proxies: []model.ClientSource{{Clients: 500}}}
	}
	b.Reset()
	require.NoError(t, framesOf(100, 40, looks...).End(&b))
	require.Contains(t, b.String(), "Since the start: 400 connections turned away, 1 connection let in late, ")
	require.Error(t, framesOf(100, 40, looks...).End(failing{io.ErrShortWrite}))
}
