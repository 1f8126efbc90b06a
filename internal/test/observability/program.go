package observability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// program is a server that runs until it is stopped.
type program struct {
	name string
	log  string // file with all it printed
	cmd  *exec.Cmd
	done chan error
}

// start runs the first of the names that is installed, in dir, and waits until
// url answers 200. env is added to the environment.
func start(ctx context.Context, dir, url string, names, args []string, env ...string) (*program, error) {
	path, err := installed(names...)
	if err != nil {
		return nil, err
	}
	p := &program{name: names[0], log: filepath.Join(dir, names[0]+".log"), done: make(chan error, 1)}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(path, args...) //nolint:noctx // it ends with stop, not with what waits for its start
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = diesWithParent()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.cmd.Wait() }()
	if err := p.ready(ctx, url); err != nil {
		p.stop()
		output, _ := os.ReadFile(p.log)
		return nil, fmt.Errorf("%s: %w\n%s", p.name, err, output)
	}
	return p, nil
}

// Installed reports whether one of the programs is there.
func Installed(names ...string) bool {
	_, err := installed(names...)
	return err == nil
}

// installed is the path of the first program that there is: Debian calls
// Alertmanager prometheus-alertmanager.
func installed(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", names[0], exec.ErrNotFound)
}

func (p *program) ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // a large one reads its log again
	defer cancel()
	for {
		_, err := get(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case ended := <-p.done:
			p.done <- ended
			return fmt.Errorf("ended before it was ready: %w", ended)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop asks it to end, and ends it when it does not.
func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	p.done <- <-p.done
}

// get answers the body of a page that must be there.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status + ": " + string(body))
	}
	return body, err
}
