package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// mount is a folder as Kubernetes mounts a ConfigMap: tcpdiag.yml is a link to
// ..data/tcpdiag.yml, ..data one to a folder, and that link is what changes.
type mount struct {
	dir      string
	versions int
}

func newMount(t *testing.T, text string) *mount {
	t.Helper()
	m := &mount{dir: t.TempDir()}
	m.put(t, text)
	require.NoError(t, os.Symlink("..data/tcpdiag.yml", filepath.Join(m.dir, "tcpdiag.yml")))
	return m
}

func (m *mount) put(t *testing.T, text string) {
	t.Helper()
	m.versions++
	version := fmt.Sprintf("..%d", m.versions)
	require.NoError(t, os.Mkdir(filepath.Join(m.dir, version), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, version, "tcpdiag.yml"), []byte(text), 0o644))
	require.NoError(t, os.Symlink(version, filepath.Join(m.dir, "..next")))
	require.NoError(t, os.Rename(filepath.Join(m.dir, "..next"), filepath.Join(m.dir, "..data")))
}

// inside runs a command in the folder, which names the file by a relative path.
func (m *mount) inside(cmd *exec.Cmd) { cmd.Dir = m.dir }

const quick = "scan_interval: 100ms\nsample_interval: 5ms\n"

func series(name string, port uint16) string {
	return fmt.Sprintf(`%s\{.*port="%d".*\}`, name, port)
}

func drops(port uint16) string {
	return fmt.Sprintf(`tcpdiag_listener_dropped_packets_total\{.*listener="127\.0\.0\.1:%d".*\}`, port)
}

const (
	reloadOK = "tcpdiag_config_last_reload_successful"
	reloadAt = "tcpdiag_config_last_reload_success_timestamp_seconds"
)

// The life of an agent with a file: a listener is watched, then another, then
// both, then the file is broken, and mended. Counters survive it all.
func TestAgentReloadsItsFile(t *testing.T) {
	ns := nettest.Namespace(t)
	var a, b *nettest.Listener
	ns.Do(func() {
		a = nettest.Listen(t, nettest.ListenOptions{Backlog: 1})
		b = nettest.Listen(t, nettest.ListenOptions{Backlog: 1})
		nettest.Queue(t, a.Addr, 2)
		nettest.Queue(t, b.Addr, 2)
	})
	pa, pb := a.Addr.Port(), b.Addr.Port()
	overflow := func(l *nettest.Listener, n int) { ns.Do(func() { nettest.Overflow(t, l.Addr, n) }) }

	file := newMount(t, quick+fmt.Sprintf("targets:\n- port: %d\n  labels: {app: shop}\n", pa))
	p := start(t, ns, file.inside, "--config", "tcpdiag.yml", "--web.enable-lifecycle")
	p.becomes(t, series("tcpdiag_target_up", pa), 1)
	p.becomes(t, series(`tcpdiag_target_info`, pa), 1)
	p.becomes(t, fmt.Sprintf(`tcpdiag_target_info\{app="shop",netns="\d+",port="%d"\}`, pa), 1)
	p.becomes(t, reloadOK, 1)
	overflow(a, 30)
	p.becomes(t, drops(pa), 30)
	_, present := p.sum(t, series("tcpdiag_target_up", pb))
	require.False(t, present, "nobody expects it")

	// by SIGHUP, to the other one
	file.put(t, quick+fmt.Sprintf("labels: {team: x}\ntargets:\n- port: %d\n  limits: {max_connections: 77}\n", pb))
	p.hangUp(t)
	p.becomes(t, series("tcpdiag_target_up", pb), 1)
	p.becomes(t, `tcpdiag_connector_limit\{limit="max_connections",.*\}`, 77)
	p.becomes(t, fmt.Sprintf(`tcpdiag_target_info\{netns="\d+",port="%d",team="x"\}`, pb), 1)
	p.vanishes(t, series("tcpdiag_target_up", pa))
	p.becomes(t, drops(pa), 30)
	p.becomes(t, fmt.Sprintf(`tcpdiag_listener_queue_resets_total\{listener="127\.0\.0\.1:%d".*\}`, pa), 0)
	overflow(b, 7)
	p.becomes(t, drops(pb), 7)
	p.logs(t, `msg="configuration reloaded" by=SIGHUP`)

	// by HTTP, to both
	file.put(t, quick+fmt.Sprintf("targets:\n- ports: [%d, %d, 1]\n", pa, pb))
	code, body := p.try(http.MethodPost, "/-/reload")
	require.Equal(t, http.StatusOK, code, body)
	p.becomes(t, series("tcpdiag_target_up", pa), 1)
	p.becomes(t, series("tcpdiag_target_up", 1), 0)
	overflow(a, 5)
	p.becomes(t, drops(pa), 35)
	p.becomes(t, drops(pb), 7)
	p.vanishes(t, `tcpdiag_connector_limit\{.*\}`)
	at, _ := p.sum(t, reloadAt)
	require.InDelta(t, time.Now().Unix(), at, 60)

	// broken: what was stays
	file.put(t, quick+"targets:\n- prot: 80\nall: maybe\n")
	code, body = p.try(http.MethodPost, "/-/reload")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, body, `tcpdiag.yml:4: unknown key "prot": did you mean "port"?`+"\n")
	require.Contains(t, body, `tcpdiag.yml:5: all "maybe": give true or false`+"\n")
	p.becomes(t, reloadOK, 0)
	p.becomes(t, reloadAt, at)
	p.hangUp(t)
	p.logs(t, "by=SIGHUP err=")
	overflow(a, 5)
	p.becomes(t, drops(pa), 40)
	errors := 0
	for line := range strings.Lines(p.logged()) {
		if strings.Contains(line, "level=ERROR") {
			errors++
			require.Contains(t, line, `tcpdiag.yml:5: `, "all of it in one line")
		}
	}
	require.Equal(t, 2, errors)

	// a file that was removed, a process that has exited
	require.NoError(t, os.Remove(filepath.Join(file.dir, "..data")))
	code, body = p.try(http.MethodPost, "/-/reload")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, body, "open tcpdiag.yml: no such file or directory")
	file.put(t, "targets: [{pid: 4194304}]")
	code, body = p.try(http.MethodPost, "/-/reload")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, body, "pid 4194304: ")

	// mended
	file.put(t, quick+fmt.Sprintf("targets:\n- port: %d\n", pa))
	code, _ = p.try(http.MethodPost, "/-/reload")
	require.Equal(t, http.StatusOK, code)
	p.becomes(t, reloadOK, 1)
	p.vanishes(t, series("tcpdiag_target_up", pb))
	p.becomes(t, drops(pa), 40)
	p.becomes(t, drops(pb), 7)
	now, _ := p.sum(t, reloadAt)
	require.Greater(t, now, at)

	code, _ = p.try(http.MethodGet, "/-/reload")
	require.Equal(t, http.StatusMethodNotAllowed, code)
}

// Signals and requests at once: each is answered, by the reload or by there
// being too many, and the last file is in force.
func TestReloadsDoNotRace(t *testing.T) {
	ns := nettest.Namespace(t)
	file := newMount(t, quick)
	p := start(t, ns, file.inside, "--config", "tcpdiag.yml", "--web.enable-lifecycle")
	var wg sync.WaitGroup
	for i := range 10 {
		file.put(t, quick+fmt.Sprintf("targets: [{port: %d}]\n", 2000+i))
		wg.Go(func() {
			code, body := p.try(http.MethodPost, "/-/reload")
			assert.Contains(t, []int{http.StatusOK, http.StatusConflict}, code, body)
		})
		p.hangUp(t)
	}
	wg.Wait()
	p.becomes(t, series("tcpdiag_target_up", 2009), 0)
	p.becomes(t, "tcpdiag_config_last_reload_successful", 1)
	require.NotContains(t, p.logged(), "level=ERROR")
	require.NotContains(t, p.logged(), "DATA RACE")
}

func TestReloadWithoutAFileOrWithoutLeave(t *testing.T) {
	ns := nettest.Namespace(t)
	p := start(t, ns, nil)
	code, body := p.try(http.MethodPost, "/-/reload")
	require.Equal(t, http.StatusForbidden, code)
	require.Contains(t, body, "--web.enable-lifecycle")
	p.hangUp(t)
	p.logs(t, "started without --config")
	code, _ = p.try(http.MethodGet, "/-/healthy")
	require.Equal(t, http.StatusOK, code, "it has not died")
	p.vanishes(t, "tcpdiag_config_last_reload_successful")

	other := start(t, nettest.Namespace(t), nil, "--web.enable-lifecycle")
	code, body = other.try(http.MethodPost, "/-/reload")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "started without --config")
}

// pty is the other end of a terminal.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// In a terminal that goes away the agent ends, as any program there does; not
// when somebody sends it SIGHUP while the terminal is there, and not with nohup.
func TestTerminalThatHangsUp(t *testing.T) {
	// What is caught here is not ignored in what is started: these tests may run
	// with nohup themselves.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for name, nohup := range map[string]bool{"ends": false, "nohup": true} {
		t.Run(name, func(t *testing.T) {
			master, slave := pty(t)
			p := start(t, nettest.Namespace(t), func(cmd *exec.Cmd) {
				cmd.Stdin = slave
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
				if nohup {
					path, err := exec.LookPath("nohup")
					require.NoError(t, err)
					cmd.Path, cmd.Args = path, append([]string{"nohup"}, cmd.Args...)
				}
			})
			p.hangUp(t)
			p.logs(t, "started without --config")
			require.NoError(t, slave.Close())
			require.NoError(t, master.Close())
			if nohup {
				require.Eventually(t, func() bool { return strings.Count(p.logged(), "by=SIGHUP") >= 2 }, time.Minute, 10*time.Millisecond)
				code, _ := p.try(http.MethodGet, "/-/healthy")
				require.Equal(t, http.StatusOK, code)
				return
			}
			select {
			case err := <-p.done:
				require.NoError(t, err)
				p.done <- err
			case <-time.After(time.Minute):
				t.Fatal("it runs on")
			}
		})
	}
}
