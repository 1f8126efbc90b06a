package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/watch"
)

// replayInterval is that of the recording, and of its lines.
const replayInterval = time.Second

// screenWanted: text on a terminal that can show one.
func screenWanted(output string) bool { return output == "text" && os.Getenv("TERM") != "dumb" }

// replayScreen is the screen of watch over moments that are known.
type replayScreen struct {
	*watchScreen
	moments []*model.Snapshot
	at      int // of the moment shown
	speed   float64
	paused  bool
	turn    int // of the latest tick: older ones are void
}

// turnMsg is when the next moment is due.
type turnMsg int

func newReplayScreen(moments []*model.Snapshot, speed float64, text render.TextOptions) *replayScreen {
	m := &replayScreen{watchScreen: newWatchScreen(replayInterval, text), moments: moments, speed: speed}
	m.seek(0)
	return m
}

func (m *replayScreen) run(ctx context.Context, w io.Writer) error {
	if len(m.moments) == 0 {
		return nil
	}
	_, err := tea.NewProgram(m, tea.WithOutput(w), tea.WithoutSignalHandler(), tea.WithContext(ctx)).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Init has the second moment come in its time.
func (m *replayScreen) Init() tea.Cmd { return m.next() }

// next waits as long as it was from this moment to the next.
func (m *replayScreen) next() tea.Cmd {
	m.turn++
	if m.paused || m.at+1 >= len(m.moments) {
		return nil
	}
	wait := m.moments[m.at+1].Time.Sub(m.moments[m.at].Time)
	wait = min(max(wait, 0), time.Minute)
	turn := turnMsg(m.turn)
	return tea.Tick(time.Duration(float64(wait)/m.speed), func(time.Time) tea.Msg { return turn })
}

// seek shows a moment. What was before it is drawn again.
func (m *replayScreen) seek(at int) {
	at = max(0, min(at, len(m.moments)-1))
	from := m.at + 1
	if at < from || m.at == 0 {
		m.frames = watch.NewFrames(replayInterval)
		m.frames.Resize(m.text, m.height)
		from = 0
	}
	for i := from; i <= at && i < len(m.moments); i++ {
		m.frames.Add(m.moments[i])
	}
	m.at = at
}

// Update takes a key, the terminal's size, or the time for the next moment.
func (m *replayScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case turnMsg:
		if int(msg) == m.turn {
			m.seek(m.at + 1)
			return m, m.next()
		}
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	default:
		_, cmd := m.watchScreen.Update(msg)
		return m, cmd
	}
	return m, nil
}

func (m *replayScreen) press(key string) tea.Cmd {
	switch key {
	case "space", "p":
		m.paused = !m.paused
	case "right", "l":
		m.seek(m.at + 1)
	case "left", "h":
		m.seek(m.at - 1)
	case "pgdown":
		m.seek(m.at + 10)
	case "pgup":
		m.seek(m.at - 10)
	case "home":
		m.seek(0)
	case "end":
		m.seek(len(m.moments) - 1)
	case "+":
		m.speed = min(m.speed*2, 1000)
	case "-":
		m.speed = max(m.speed/2, .1)
	default:
		return m.key(key)
	}
	return m.next()
}

// View adds where in the recording the moment is.
func (m *replayScreen) View() tea.View {
	state := fmt.Sprintf("%.3g times as fast", m.speed)
	if m.paused {
		state = "held"
	}
	m.frames.Caption(fmt.Sprintf("replay %d of %d · %s · %s", m.at+1, len(m.moments), m.moments[m.at].Time.UTC().Format(time.TimeOnly), state))
	return m.watchScreen.View()
}
