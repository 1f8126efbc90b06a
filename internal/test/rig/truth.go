package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Truth is what Tomcat itself says about its connector.
type Truth struct {
	Busy        int // threads that handle a request (Executor.getActiveCount)
	Connections int // of the connection latch (LimitLatch.getCount)
}

// Accepted is the number of connections held. Below the limit the latch
// counts one more: the acceptor takes its slot before accept().
func (t Truth) Accepted(maxConnections int) int {
	if t.Connections < maxConnections {
		return t.Connections - 1
	}
	return t.Connections
}

// Truth asks Actuator.
func (t *Tomcat) Truth(ctx context.Context) (Truth, error) {
	var out Truth
	for _, meter := range []struct {
		name string
		into *int
	}{
		{"tomcat.threads.busy", &out.Busy},
		{"tomcat.connections.current", &out.Connections},
	} {
		value, err := t.meter(ctx, meter.name)
		if err != nil {
			return Truth{}, fmt.Errorf("rig: actuator: %s: %w", meter.name, err)
		}
		*meter.into = value
	}
	return out, nil
}

func (t *Tomcat) meter(ctx context.Context, name string) (int, error) {
	answer, err := t.actuator(ctx, "metrics/", name, "?tag=name:", t.Name())
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("answered %s", answer.Status)
	}
	// To the last byte: a connection closed with bytes unread is reset, and
	// resets are something that is counted here.
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	var body struct {
		Measurements []struct{ Value float64 }
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return 0, err
	}
	if len(body.Measurements) != 1 {
		return 0, fmt.Errorf("%d measurements instead of one", len(body.Measurements))
	}
	return int(body.Measurements[0].Value), nil
}

// Counters reads the namespace's own TcpExt and Tcp counters, apart from
// everything that tcpdiag uses for it: pairs of lines, the names and the values.
func Counters() (map[string]int, error) {
	out := make(map[string]int)
	for _, file := range []string{"netstat", "snmp"} {
		f, err := os.Open("/proc/thread-self/net/" + file)
		if err != nil {
			return nil, fmt.Errorf("rig: counters: %w", err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			names := strings.Fields(lines.Text())
			if !lines.Scan() {
				break
			}
			if names[0] != "TcpExt:" && names[0] != "Tcp:" {
				continue
			}
			for i, value := range strings.Fields(lines.Text())[1:] {
				out[names[i+1]], _ = strconv.Atoi(value)
			}
		}
		_ = f.Close()
	}
	return out, nil
}
