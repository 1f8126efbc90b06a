package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	api "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// proxyTimeout is short: where the API server cannot reach pods, as behind many a
	// firewall, the forwarded port, which takes the kubelet's way, is next.
	proxyTimeout   = 4 * time.Second
	forwardTimeout = 10 * time.Second
	// mostBody bounds what an agent sends.
	mostBody = 8 << 20
)

// Agent is where a pod's agent serves.
type Agent struct {
	Namespace, Pod string
	Port           int
	Loopback       bool // at the loopback alone, to which the pod proxy does not lead
}

// Ask is the answer to a GET: by the pod proxy, else by a forwarded port.
func (c *Client) Ask(ctx context.Context, a Agent, path string) ([]byte, error) {
	if a.Loopback {
		return c.forward(ctx, a, path)
	}
	body, err := c.proxy(ctx, a, path)
	if err == nil || ctx.Err() != nil || final(err) {
		return body, err
	}
	again, second := c.forward(ctx, a, path)
	if second == nil {
		return again, nil
	}
	// Of two rights either is enough: the lesser one is asked for.
	if _, denied := Lacks(err); denied {
		if _, too := Lacks(second); too {
			return nil, err
		}
		return nil, second
	}
	if _, denied := Lacks(second); denied {
		return nil, err
	}
	return nil, second
}

// final: the agent itself has answered, or the pod is not there.
func final(err error) bool {
	var status *agentStatus
	return errors.As(err, &status) || errors.Is(err, errTooMuch) || errors.Is(err, errRedirect) || NotThere(err)
}

// NotThere says whether an API server does not find the object: neither an agent nor another server
// that does not know the path is meant.
func NotThere(err error) bool {
	var status api.APIStatus
	return api.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind != ""
}

// agentStatus is an agent's answer that is no 200.
type agentStatus struct{ code int }

func (e *agentStatus) Error() string {
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "the agent there asks for a password, which is not sent through the API server"
	case http.StatusNotFound:
		return "the agent there has no such page (404)"
	case http.StatusServiceUnavailable:
		return "the agent there is not ready: its first scan is not done"
	}
	return fmt.Sprintf("the agent there answers with status %d", e.code)
}

func (c *Client) proxy(ctx context.Context, a Agent, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	stream, err := c.rest.Get().AbsPath(podPath(a.Namespace, a.Pod+":"+strconv.Itoa(a.Port), "proxy", path)).Stream(ctx)
	if err != nil {
		return nil, explain(err, access{"get", "", "pods/proxy", a.Namespace})
	}
	defer stream.Close()
	return bounded(stream)
}

var errTooMuch = fmt.Errorf("the agent there sends more than %d MiB", mostBody>>20)

func bounded(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, mostBody+1))
	if err == nil && len(body) > mostBody {
		err = errTooMuch
	}
	return body, err
}

// forward speaks HTTP over a forwarded port, which listens nowhere on this machine.
func (c *Client) forward(ctx context.Context, a Agent, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	tunnel, err := c.tunnel(ctx, a)
	if err != nil {
		return nil, err
	}
	defer tunnel.Close()
	transport := &http.Transport{
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return tunnel, nil },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(a.Port)+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := guard{transport}.RoundTrip(req)
	if errors.Is(err, errRedirect) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("the agent there does not answer on port %d: %s", a.Port, Printable(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, &agentStatus{resp.StatusCode}
	}
	return bounded(resp.Body)
}
