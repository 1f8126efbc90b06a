package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// bench is where the cases run.
type bench struct {
	ctx     context.Context
	dir     string
	decoyed time.Duration // how long the decoys are tried
	row     *row
	java    []string // what the case starts the application with
	outside []string // what takes tcpdiag out of the namespace of the case
	flags   []string // of its snapshots, besides
	ends    []func() // of the case, the latest last
}

// row is a case's line of the table.
type row struct{ Name, Truth, Said, Wrong string }

// caseFailed ends a case.
type caseFailed struct{ err error }

func (b *bench) perform(pattern *regexp.Regexp, table string) error {
	var rows []row
	for _, c := range cases() {
		if !pattern.MatchString(c.name) {
			continue
		}
		r := b.one(c)
		fmt.Printf("%s\n  truth: %s\n  said:  %s\n", r.Name, r.Truth, r.Said)
		if r.Wrong != "" {
			fmt.Println("  WRONG:", r.Wrong)
		}
		rows = append(rows, r)
	}
	return write(table, rows)
}

func (b *bench) one(c waitCase) (r row) {
	r.Name = c.name
	b.row, b.ends, b.java, b.outside, b.flags = &r, nil, []string{"java"}, nil, nil
	ctx, cancel := context.WithTimeout(b.ctx, b.decoyed+5*time.Minute)
	outer := b.ctx
	b.ctx = ctx
	defer func() {
		if failed, ok := recover().(caseFailed); ok {
			b.wrong("%s", failed.err)
		}
		for i := len(b.ends) - 1; i >= 0; i-- {
			b.ends[i]()
		}
		cancel()
		b.ctx = outer
	}()
	c.run(b)
	return r
}

func (b *bench) must(err error) {
	if err != nil {
		panic(caseFailed{err})
	}
}

func (b *bench) wrong(format string, args ...any) {
	b.row.Wrong = strings.TrimPrefix(b.row.Wrong+"; "+fmt.Sprintf(format, args...), "; ")
}

// want notes what does not hold.
func (b *bench) want(ok bool, format string, args ...any) {
	if !ok {
		b.wrong(format, args...)
	}
}

// until waits for what a case needs.
func (b *bench) until(what string, ready func() bool) {
	for !ready() {
		if b.ctx.Err() != nil {
			panic(caseFailed{fmt.Errorf("waited for: %s", what)})
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// start runs a program until the case ends.
func (b *bench) start(log string, cmd *exec.Cmd) *exec.Cmd {
	f, err := os.Create(filepath.Join(b.dir, log+".log"))
	b.must(err)
	cmd.Stdout, cmd.Stderr = f, f
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	b.must(cmd.Start())
	b.ends = append(b.ends, func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = f.Close()
	})
	return cmd
}

// app starts the application with settings on a port.
func (b *bench) app(port int, settings ...string) {
	dir, err := os.MkdirTemp(b.dir, "app-")
	b.must(err)
	text := fmt.Sprintf("server.port=%d\nserver.tomcat.threads.max=20\nspring.datasource.url=jdbc:postgresql://127.0.0.1:%d/orders\n"+
		"spring.datasource.username=app\nspring.datasource.password=secret\nspring.data.redis.host=127.0.0.1\nspring.data.redis.port=%d\nspring.data.redis.timeout=120s\n", port, postgresPort, redisPort)
	b.must(os.WriteFile(dir+"/application.properties", []byte(text+strings.Join(settings, "\n")+"\n"), 0o600))
	args := slices.Concat(b.java, []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", b.dir + "/waiting.jar"})
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	cmd.Dir = dir
	b.start(fmt.Sprintf("app-%d", port), cmd)
	b.until("the application", func() bool { return b.get(port, "/hello") == nil })
}

func (b *bench) get(port int, path string) error {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return err
}

// load are clients that ask again as soon as they are answered.
type load struct {
	served, failed atomic.Int64
	stop           func() // returns when the last has stopped
}

func (b *bench) crowd(n int, path string) *load {
	c, outer := &load{}, b.ctx
	ctx, cancel := context.WithCancel(outer)
	var wg sync.WaitGroup
	inner := &bench{ctx: ctx}
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				if inner.get(port, path) == nil {
					c.served.Add(1)
				} else if ctx.Err() == nil {
					c.failed.Add(1)
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	c.stop = func() { cancel(); wg.Wait() }
	b.ends = append(b.ends, c.stop)
	return c
}

// rate is how many requests are answered in a second, over d.
func (c *load) rate(d time.Duration) float64 {
	began, before := time.Now(), c.served.Load()
	time.Sleep(d)
	return float64(c.served.Load()-before) / time.Since(began).Seconds()
}

// ask takes a snapshot of a port.
func (b *bench) ask(port int) *api.Listener {
	l, _ := b.askAs(b.outside, port)
	return l
}

// askAs takes one behind a prefix, which makes it another user's.
func (b *bench) askAs(prefix []string, port int) (*api.Listener, *api.Snapshot) {
	args := append(slices.Clone(prefix), b.dir+"/tcpdiag", "snapshot", "--port", fmt.Sprint(port), "-o", "json")
	args = append(args, b.flags...)
	if b.outside != nil {
		args = append(args, "--all-namespaces")
	}
	out, err := exec.CommandContext(b.ctx, args[0], args[1:]...).Output()
	var s api.Snapshot
	if e := json.Unmarshal(out, &s); e != nil {
		b.must(fmt.Errorf("%w: %w", e, err))
	}
	return b.listener(&s, port), &s
}

// listener is what a document says of a port.
func (b *bench) listener(s *api.Snapshot, port int) *api.Listener {
	for i := range s.Listeners {
		if int(s.Listeners[i].Port) == port {
			b.row.Said = s.Listeners[i].Verdict.Summary
			return &s.Listeners[i]
		}
	}
	b.must(fmt.Errorf("nothing on port %d", port))
	return nil
}
