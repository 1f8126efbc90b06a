package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// result is what clients counted.
type result struct {
	ok, connectTimeout, readTimeout, reset, refused, other int

	spread time.Duration // from the first client's start to the last's
	wall   time.Duration // from the first client's start to the last's end
	median time.Duration // latency of those served
	max    time.Duration
}

func (r result) String() string {
	parts := []string{fmt.Sprintf("%d ok", r.ok)}
	for _, kind := range []struct {
		n    int
		name string
	}{
		{r.connectTimeout, "connect timeouts"},
		{r.readTimeout, "read timeouts"},
		{r.reset, "resets"},
		{r.refused, "refused"},
		{r.other, "otherwise"},
	} {
		if kind.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", kind.n, kind.name))
		}
	}
	return fmt.Sprintf("%s in %.1f s", strings.Join(parts, ", "), r.wall.Seconds())
}

// crowd are the own clients at work.
type crowd struct {
	*demo.Load
	b      *scene
	done   chan struct{}
	cancel context.CancelFunc
	began  time.Time
	wall   time.Duration
	o      demo.BurstOptions
}

// start lets clients loose; the address is the sample server's when empty.
func (b *scene) start(o demo.BurstOptions) *crowd {
	if o.Address == "" {
		o.Address = "127.0.0.1:" + strconv.Itoa(port)
	}
	load, err := demo.NewLoad(o)
	b.Must(err)
	ctx, cancel := context.WithCancel(b.Ctx)
	c := &crowd{Load: load, b: b, done: make(chan struct{}), cancel: cancel, began: time.Now(), o: o}
	go func() {
		defer close(c.done)
		load.Run(ctx)
		c.wall = time.Since(c.began)
	}()
	b.AtEnd(c.leave)
	return c
}

// leave makes the clients close their connections.
func (c *crowd) leave() {
	c.cancel()
	<-c.done
}

// connected waits until n clients are.
func (c *crowd) connected(n int) {
	c.b.Within(10*time.Second, strconv.Itoa(n)+" clients connected", func() bool { return c.Now().Open >= n })
}

// wait waits for every client's outcome.
func (c *crowd) wait() result {
	<-c.done
	return c.result()
}

// result is how it stands now.
func (c *crowd) result() result {
	now := c.Now().Outcomes
	if now.LocalError != nil {
		c.b.Must(fmt.Errorf("a client met this machine's own limits: %w", now.LocalError))
	}
	r := result{
		ok: now.Of(demo.OK), connectTimeout: now.Of(demo.ConnectTimeout), readTimeout: now.Of(demo.ReadTimeout),
		reset: now.Of(demo.Reset), refused: now.Of(demo.Refused),
		other: now.Of(demo.Closed) + now.Of(demo.BadAnswer) + now.Of(demo.Unfinished),
		wall:  c.wall, median: now.Percentile(.5), max: now.Percentile(1),
	}
	if c.o.Rate > 0 {
		r.spread = time.Duration(float64(c.o.Clients) / c.o.Rate * float64(time.Second))
	}
	return r
}

// users are k6's: each sends one request.
type users struct {
	n                int
	handler, timeout time.Duration
	within           time.Duration // in which they start; 0 is at the same moment
}

// k6 lets virtual users loose and waits for them.
func (b *scene) k6(u users) result {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(b.Ctx, b.k6Program, "run", "--no-usage-report", "--quiet", "--address", "",
		"--env", "VUS="+strconv.Itoa(u.n), "--env", "TIMEOUT="+u.timeout.String(),
		"--env", "WITHIN="+strconv.FormatInt(u.within.Milliseconds(), 10),
		"--env", fmt.Sprintf("URL=http://127.0.0.1:%d%s", port, hello(u.handler)), b.Source("internal/test/lab")+"/k6/burst.js")
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &errs, rig.DiesWithParent()
	if err := cmd.Run(); err != nil {
		b.Must(fmt.Errorf("k6: %w\n%s", err, errs.String()))
	}
	r, err := parseK6(out.Bytes())
	b.Must(err)
	if got := r.ok + r.connectTimeout + r.readTimeout + r.reset + r.refused + r.other; got != u.n {
		b.Must(fmt.Errorf("k6: %d of %d clients have an outcome\n%s", got, u.n, errs.String()))
	}
	return r
}

// parseK6 reads what the script's handleSummary wrote.
func parseK6(b []byte) (result, error) {
	var doc map[string]struct {
		Count         int
		Min, Med, Max float64
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return result{}, fmt.Errorf("k6: summary %q: %w", b, err)
	}
	millis := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	began := doc["began"]
	return result{
		ok: doc["ok"].Count, connectTimeout: doc["connect_timeout"].Count, readTimeout: doc["read_timeout"].Count,
		reset: doc["reset"].Count, refused: doc["refused"].Count,
		other:  doc["closed"].Count + doc["bad_answer"].Count + doc["other"].Count,
		spread: millis(began.Max - began.Min), wall: millis(doc["ended"].Max - began.Min),
		median: millis(doc["latency"].Med), max: millis(doc["latency"].Max),
	}, nil
}

// visits is what Locust reports.
type visits struct {
	Requests      int `json:"requests"`
	Failures      int `json:"failures"`
	UsersAnswered int `json:"users_answered"`
}

// locust lets users come and go on keep-alive connections for a while. during
// is called when they have been at it for half of the time.
func (b *scene) locust(users int, handler, runtime time.Duration, during func()) visits {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(b.Ctx, b.locustProgram, "--headless", "--only-summary", "--loglevel", "ERROR",
		"-f", b.Source("internal/test/lab")+"/locust/users.py", "-H", "http://127.0.0.1:"+strconv.Itoa(port),
		"-u", strconv.Itoa(users), "-r", strconv.Itoa(users), "-t", strconv.Itoa(int(runtime.Seconds()))+"s", "--stop-timeout", "0")
	cmd.Env = append(cmd.Environ(), "MS="+strconv.FormatInt(handler.Milliseconds(), 10))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &errs, rig.DiesWithParent()
	b.Must(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	b.Wait(runtime/2 + 2*time.Second)
	during()
	if err := <-ended; err != nil {
		b.Must(fmt.Errorf("locust: %w\n%s", err, errs.String()))
	}
	v, err := parseLocust(out.Bytes())
	b.Must(err)
	return v
}

// parseLocust finds the script's own line among Locust's tables.
func parseLocust(out []byte) (v visits, err error) {
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte(`{"requests"`)) {
			return v, json.Unmarshal(line, &v)
		}
	}
	return v, fmt.Errorf("locust: no report in %q", out)
}

// Their versions.
const (
	k6Version     = "v1.8.1"
	locustVersion = "2.47.0"
)

// k6 is the program, built once.
func k6(c *rig.Case) string {
	return c.Made(filepath.Join(c.Cache(), "k6-"+k6Version), func(path string) error {
		work := filepath.Join(c.Kit.Dir, "k6")
		err := c.Download("", "env", "GOBIN="+work, "GOFLAGS=", "go", "install", "go.k6.io/k6@"+k6Version)
		if err != nil {
			return err
		}
		c.Do("cp", filepath.Join(work, "k6"), path)
		return nil
	})
}

// locust is the program in a virtual environment, which holds its own path: it is made
// in place, and the program appears last.
func locust(c *rig.Case) string {
	dir := filepath.Join(c.Cache(), "locust-"+locustVersion)
	return c.Made(filepath.Join(dir, "bin", "locust"), func(string) error {
		c.Do("python3", "-m", "venv", dir)
		return c.Download("", filepath.Join(dir, "bin", "pip"), "install", "-q", "locust=="+locustVersion)
	})
}
