package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Limits are a connector's, under the sample server's names. Zero leaves
// Tomcat's default.
type Limits struct {
	Threads        int
	MinSpare       int
	MaxConnections int
	AcceptCount    int
}

// TomcatOptions start a sample server.
type TomcatOptions struct {
	Artifacts
	Limits
	Port           int
	ManagementPort int // Actuator's own port: it answers while the connector is full
	TLS            bool

	ExtraPort   int // a second connector; 0 is none
	ExtraTLS    bool
	ExtraLimits Limits

	Env  []string     // more settings, NAME=value
	Args []string     // after the jar
	Log  *os.File     // nil discards
	HTTP *http.Client // reaches the server; nil is the caller's network

	Dir  string               // the working directory; "" is the caller's
	Wrap []string             // what java is started by: a program that replaces itself, and its arguments
	Attr *syscall.SysProcAttr // nil: it dies with its parent
}

// Tomcat is a running sample server.
type Tomcat struct {
	TomcatOptions
	PID  int
	cmd  *exec.Cmd
	done chan error
}

// StartTomcat starts a server on 127.0.0.1's side of all addresses and waits
// until it answers.
func StartTomcat(ctx context.Context, o TomcatOptions) (*Tomcat, error) {
	// A small heap, with room for the young ones and for the classes, so that
	// no collection pauses the acceptor; no time spent on optimising code that
	// runs for seconds.
	line := slices.Concat(o.Wrap, []string{
		"java",
		"-Xms160m", "-Xmx160m", "-Xmn96m", "-XX:MetaspaceSize=128m", "-Xss256k",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", o.Jar,
	}, o.Args)
	cmd := exec.Command(line[0], line[1:]...) //nolint:noctx // ends with Stop
	cmd.Env = append(os.Environ(), o.environment()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.Dir, o.Log, o.Log
	if cmd.SysProcAttr = o.Attr; o.Attr == nil {
		cmd.SysProcAttr = DiesWithParent()
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("rig: tomcat: %w", err)
	}
	t := &Tomcat{TomcatOptions: o, PID: cmd.Process.Pid, cmd: cmd, done: make(chan error, 1)}
	go func() { t.done <- cmd.Wait() }()
	if err := t.ready(ctx); err != nil {
		t.Stop()
		return nil, fmt.Errorf("rig: tomcat on port %d: %w", o.Port, err)
	}
	return t, nil
}

func (o *TomcatOptions) environment() []string {
	env := []string{
		"SERVER_PORT=" + strconv.Itoa(o.Port),
		"MANAGEMENT_PORT=" + strconv.Itoa(o.ManagementPort),
		"TLS=" + strconv.FormatBool(o.TLS),
		"TLS_KEYSTORE=" + o.Keystore,
		"TLS_KEYSTORE_PASSWORD=" + KeystorePassword,
		"EXTRA_PORT=" + strconv.Itoa(o.ExtraPort),
		"EXTRA_TLS=" + strconv.FormatBool(o.ExtraTLS),
	}
	env = append(env, o.Limits.environment("TOMCAT_")...)
	env = append(env, o.ExtraLimits.environment("EXTRA_")...)
	return append(env, o.Env...)
}

func (l Limits) environment(prefix string) []string {
	var env []string
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"MAX_THREADS", l.Threads},
		{"MIN_SPARE_THREADS", l.MinSpare},
		{"MAX_CONNECTIONS", l.MaxConnections},
		{"ACCEPT_COUNT", l.AcceptCount},
	} {
		if limit.value != 0 {
			env = append(env, prefix+limit.name+"="+strconv.Itoa(limit.value))
		}
	}
	return env
}

func (t *Tomcat) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := t.healthy(ctx)
		if err == nil {
			return nil
		}
		select {
		case failed := <-t.done:
			t.done <- failed
			return fmt.Errorf("ended before it was ready: %w", failed)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (t *Tomcat) healthy(ctx context.Context) error {
	answer, err := t.actuator(ctx, "health")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s", answer.Status)
	}
	return nil
}

// Stop kills the server and waits for its end: its listeners are closed then.
func (t *Tomcat) Stop() {
	_ = t.cmd.Process.Kill()
	t.done <- <-t.done
}

// Address is where clients find the connector.
func (t *Tomcat) Address() string { return "127.0.0.1:" + strconv.Itoa(t.Port) }

// ExtraAddress is where clients find the second one.
func (t *Tomcat) ExtraAddress() string { return "127.0.0.1:" + strconv.Itoa(t.ExtraPort) }

// Name is what Tomcat calls its connector, in thread names and in Actuator.
func (t *Tomcat) Name() string {
	if t.TLS {
		return "https-jsse-nio-" + strconv.Itoa(t.Port)
	}
	return "http-nio-" + strconv.Itoa(t.Port)
}

func (t *Tomcat) actuator(ctx context.Context, path ...string) (*http.Response, error) {
	url := fmt.Sprintf("http://127.0.0.1:%d/actuator/%s", t.ManagementPort, strings.Join(path, ""))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Close = true // no idle connection in the namespace's counts
	if t.HTTP != nil {
		return t.HTTP.Do(request)
	}
	return http.DefaultClient.Do(request)
}
