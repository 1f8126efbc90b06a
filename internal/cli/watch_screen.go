package cli

import (
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/watch"
)

// watchScreen is watch on a terminal: keys and snapshots in, frames out.
type watchScreen struct {
	frames *watch.Frames
	text   render.TextOptions
	height int
}

func newWatchScreen(interval time.Duration, text render.TextOptions) *watchScreen {
	return &watchScreen{frames: watch.NewFrames(interval), text: text}
}

// run draws until the reader quits or there are no more snapshots. The screen is
// taken when there is something to show, so that what cannot be read at
// all is reported below the prompt.
func (m *watchScreen) run(w io.Writer, snapshots <-chan *model.Snapshot) error {
	first, ok := <-snapshots
	if !ok {
		return nil
	}
	m.frames.Add(first)
	program := tea.NewProgram(m, tea.WithOutput(w), tea.WithoutSignalHandler())
	go func() { // ends with the snapshots; a program that has ended takes no more
		for snap := range snapshots {
			program.Send(snap)
		}
		program.Quit()
	}()
	if _, err := program.Run(); err != nil {
		return err
	}
	return m.frames.End(w)
}

// Init has nothing to begin with.
func (m *watchScreen) Init() tea.Cmd { return nil }

// Update takes a snapshot, a key, or the terminal's size.
func (m *watchScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case *model.Snapshot:
		m.frames.Add(msg)
	case tea.WindowSizeMsg:
		m.text.Width, m.height = msg.Width, msg.Height
		m.frames.Resize(m.text, m.height)
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *watchScreen) key(key string) tea.Cmd {
	page := max(m.height/2, 1)
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "space", "p":
		m.frames.Pause()
	case "tab", "right", "l":
		m.frames.Select(1)
	case "shift+tab", "left", "h":
		m.frames.Select(-1)
	case "esc":
		m.frames.Follow()
	case "down", "j":
		m.frames.Scroll(1)
	case "up", "k":
		m.frames.Scroll(-1)
	case "pgdown":
		m.frames.Scroll(page)
	case "pgup":
		m.frames.Scroll(-page)
	}
	return nil
}

// View takes the whole screen and gives it back at the end.
func (m *watchScreen) View() tea.View {
	v := tea.NewView(m.frames.View())
	v.AltScreen = true
	return v
}
