package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	watchedBacklog = 5
	watchedDrops   = 7
)

// fullListener is a namespace with a listener whose accept queue is full.
func fullListener(t *testing.T) (ns *nettest.NS, addr netip.AddrPort) {
	t.Helper()
	ns = nettest.Namespace(t)
	ns.Do(func() {
		addr = nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr
		nettest.Queue(t, addr, watchedBacklog+1)
	})
	return ns, addr
}

// watchCommand is tcpdiag watch inside the namespace.
func watchCommand(ns *nettest.NS, addr netip.AddrPort, args ...string) *exec.Cmd {
	cmd := tcpdiag(ns, append([]string{"watch", "--port", strconv.Itoa(int(addr.Port())), "--interval", "200ms"}, args...)...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "NO_COLOR=")
	return cmd
}

// The lines' drops add up to what the kernel dropped, and Ctrl-C is no failure.
func TestWatchWritesLines(t *testing.T) {
	ns, addr := fullListener(t)
	cmd := watchCommand(ns, addr)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	defer time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	lines, dropped, sent, done := bufio.NewScanner(out), 0, false, false
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		require.Len(t, fields, 13, lines.Text())
		if fields[0] == "time" {
			continue
		}
		require.Equal(t, addr.String(), fields[1])
		require.Equal(t, []string{"6/6", "6"}, fields[4:6])
		if !sent {
			ns.Do(func() { nettest.Overflow(t, addr, watchedDrops) })
			sent = true
		}
		n, err := strconv.Atoi(fields[9])
		require.NoError(t, err)
		dropped += n
		if n == 0 && dropped >= watchedDrops && !done { // once: a second one would kill it
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
			done = true
		}
	}
	require.NoError(t, cmd.Wait(), log.String())
	require.Equal(t, watchedDrops, dropped)
	require.Empty(t, log.String())
}

func TestWatchWritesDocuments(t *testing.T) {
	ns, addr := fullListener(t)
	cmd := watchCommand(ns, addr, "--output", "json")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	in := json.NewDecoder(out)
	for range 2 {
		var doc struct {
			Schema    string
			Listeners []struct {
				AcceptQueue struct{ Length int } `json:"accept_queue"`
			}
		}
		require.NoError(t, in.Decode(&doc))
		require.Equal(t, "tcpdiag.snapshot/v1", doc.Schema)
		require.Equal(t, watchedBacklog+1, doc.Listeners[0].AcceptQueue.Length)
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(io.MultiReader(in.Buffered(), out))
	require.NoError(t, err)
	require.True(t, len(rest) == 0 || rest[len(rest)-1] == '\n', "no half document: %q", rest)
	require.NoError(t, cmd.Wait())
}

// It is no failure either when the first snapshot is not done by then.
func TestWatchEndsByItself(t *testing.T) {
	ns, addr := fullListener(t)
	for _, lasts := range []string{"1ns", "300ms"} {
		out, err := watchCommand(ns, addr, "--for", lasts).CombinedOutput()
		require.NoError(t, err, "%s: %s", lasts, out)
	}
}

// On a terminal it takes the screen, follows the keys, and leaves the worst
// moment behind.
func TestWatchOnATerminal(t *testing.T) {
	ns, addr := fullListener(t)
	tty := openTerminal(t, 40, 100)
	cmd := watchCommand(ns, addr)
	cmd.Env = append(cmd.Env, "NO_COLOR=1") // words stand next to each other
	tty.run(t, cmd)
	tty.until(t, "q quit")
	tty.until(t, "SATURATED")
	ns.Do(func() { nettest.Overflow(t, addr, watchedDrops) })
	tty.until(t, "LOSING")
	tty.press(t, " ")
	tty.until(t, "PAUSED")
	tty.press(t, "q")
	require.NoError(t, cmd.Wait())
	tty.until(t, "\x1b[?1049l") // the screen is given back
	tty.until(t, "LOSING")
	tty.until(t, fmt.Sprintf("Since the start: %d packets dropped", watchedDrops))
}

// With a pipe for its input, keys come from the terminal all the same; SIGTERM
// ends it as q does.
func TestWatchIsTerminated(t *testing.T) {
	ns, addr := fullListener(t)
	tty := openTerminal(t, 40, 100)
	cmd := watchCommand(ns, addr)
	cmd.Stdin = strings.NewReader("")
	tty.run(t, cmd)
	tty.until(t, "SATURATED")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	tty.until(t, "\x1b[?1049l")
	tty.until(t, "SATURATED")
}

// A terminal that cannot move its cursor, an editor's as a rule, is written on as
// a file is.
func TestWatchOnADumbTerminal(t *testing.T) {
	ns, addr := fullListener(t)
	tty := openTerminal(t, 40, 200)
	cmd := watchCommand(ns, addr)
	cmd.Env = append(cmd.Env, "TERM=dumb")
	tty.run(t, cmd)
	tty.until(t, "time ")
	tty.until(t, "6/6")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait())
}

// personsEnd is the end of a pseudo-terminal at which the person sits.
type personsEnd struct {
	*os.File
	other *os.File
	seen  []byte // and not asked for yet
}

func openTerminal(t *testing.T, rows, columns uint16) *personsEnd {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	person := os.NewFile(uintptr(fd), "terminal")
	t.Cleanup(func() { _ = person.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}))
	other, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close() })
	return &personsEnd{File: person, other: other}
}

// run starts a program that has this terminal.
func (p *personsEnd) run(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if cmd.Stdin == nil {
		cmd.Stdin = p.other
	}
	cmd.Stdout, cmd.Stderr = p.other, p.other
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, true, 1
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func (p *personsEnd) press(t *testing.T, key string) {
	t.Helper()
	_, err := p.WriteString(key)
	require.NoError(t, err)
}

// until reads until the text was drawn in one piece, and forgets all before.
func (p *personsEnd) until(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, p.SetReadDeadline(time.Now().Add(2*time.Minute)))
	for buf := make([]byte, 4096); ; {
		if i := bytes.Index(p.seen, []byte(text)); i >= 0 {
			p.seen = p.seen[i+len(text):]
			return
		}
		n, err := p.Read(buf)
		p.seen = append(p.seen, buf[:n]...)
		require.NoError(t, err, "%q is not in %q", text, p.seen)
	}
}
