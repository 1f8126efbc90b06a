package docker

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// inside is set within the namespaces: the fixture as JSON.
const inside = "TCPDIAG_DOCKER_INSIDE"

// fixture is what is made outside, where there is a network.
type fixture struct {
	rig.Artifacts
	Dir        string // of the engine's data, its socket and all else; removed at the end
	Base       string // tar of a Debian with a JRE
	K6         string // the program
	Compose    string // the client's plugin
	Modules    string // folder that a Go proxy serves
	Repository string // folder that a Maven repository serves
	Cgroups    string // parent of the containers' cgroups
}

// world is the engine that all tests share, nil when they do not run.
type world struct {
	fixture
	*engine
	goproxy string // URL of a Go proxy
}

// TestMain prepares with the machine's network, then runs the tests, and the
// engine for them, in network, mount and pid namespaces: whatever happens to
// them, no container, no bridge and no mount outlives the first process of
// those.
func TestMain(m *testing.M) {
	flag.Parse()
	if !proof.Full() && !proof.Named() || os.Geteuid() != 0 {
		os.Exit(m.Run()) // every test says why it is skipped
	}
	var code int
	var err error
	if os.Getenv(inside) == "" {
		code, err = outside()
	} else if err = rig.Furnish(); err == nil {
		code = m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docker:", err)
		code = 1
	}
	os.Exit(code)
}

func outside() (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f := fixture{Cgroups: fmt.Sprintf("tcpdiag-docker-%d", os.Getpid())}
	if f.Dir, err = os.MkdirTemp("", "tcpdiag-docker-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, removeCgroups(f.Cgroups), os.RemoveAll(f.Dir)) }()
	if f.Artifacts, err = rig.Build(ctx, f.Dir); err != nil {
		return 1, err
	}
	if f.Base, err = jreBase(ctx); err != nil {
		return 1, err
	}
	if f.K6, err = k6(ctx); err != nil {
		return 1, err
	}
	if f.Compose, err = composePlugin(ctx); err != nil {
		return 1, err
	}
	if f.Modules, f.Repository, err = download(ctx, f.Dir); err != nil {
		return 1, err
	}
	return again(ctx, f)
}

// again runs the tests in the namespaces.
func again(ctx context.Context, f fixture) (code int, err error) {
	encoded, err := json.Marshal(f)
	if err != nil {
		return 1, err
	}
	return rig.Enter(ctx, inside+"="+string(encoded), rig.Apart, os.Args[1:]...)
}

// removeCgroups takes the folders away that the engine and its builder leave,
// from the leaves up, in every hierarchy.
func removeCgroups(name string) error {
	v2, _ := filepath.Glob("/sys/fs/cgroup/" + name)
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	var dirs []string
	for _, top := range append(v2, v1...) {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	var errs []error
	for _, dir := range slices.Backward(dirs) {
		errs = append(errs, removeCgroup(dir))
	}
	return errors.Join(errs...)
}

// removeCgroup waits for the last process's end, which the namespace's may take
// a moment for.
func removeCgroup(dir string) error {
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := os.Remove(dir)
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// need skips the test where it cannot run.
func need(t *testing.T) {
	t.Helper()
	proof.Skip(t)
	nettest.Root(t)
}

// TestContainers shares one engine among all tests.
func TestContainers(t *testing.T) {
	need(t)
	w := world{}
	require.NoError(t, json.Unmarshal([]byte(os.Getenv(inside)), &w.fixture))
	plugins := filepath.Join(w.Dir, "cli-plugins") // Dir is the client's configuration as well
	require.NoError(t, os.Mkdir(plugins, 0o755))
	require.NoError(t, os.Symlink(w.Compose, filepath.Join(plugins, "docker-compose")))
	w.engine = startEngine(t, w.Dir, w.Cgroups)
	w.buildImages(t)
	w.buildBuilders(t)
	t.Run("image", func(t *testing.T) { testImage(t, &w) })
	t.Run("compiled", func(t *testing.T) { testCompiled(t, &w) })
	t.Run("health", func(t *testing.T) { testHealth(t, &w) })
	t.Run("archiver", func(t *testing.T) { testArchiver(t, &w) })
	t.Run("sidecar", func(t *testing.T) { testSidecar(t, &w) })
	t.Run("compose", func(t *testing.T) { testCompose(t, &w) })
}
