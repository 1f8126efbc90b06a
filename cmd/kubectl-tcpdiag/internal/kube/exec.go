package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// Exec runs a command in a container; what it prints.
func (c *Client) Exec(ctx context.Context, namespace, pod, container string, command ...string) ([]byte, error) {
	what := access{"create", "", "pods/exec", namespace}
	r := c.rest.Post().AbsPath(podPath(namespace, pod, "exec")).
		Param("container", container).Param("stdout", "true").Param("stderr", "true")
	for _, word := range command {
		r = r.Param("command", word)
	}
	u := r.URL()
	old, err := remotecommand.NewSPDYExecutor(c.config, http.MethodPost, u)
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, u.String())
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewFallbackExecutor(websocket, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	stdout, stderr := &buffer{most: mostBody}, &buffer{most: 64 << 10}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
	switch {
	case err != nil && stderr.Len() > 0:
		return nil, fmt.Errorf("%s says: %s", command[0], Printable(errors.New(string(bytes.TrimSpace(stderr.Bytes())))))
	case err != nil:
		return nil, explain(err, what)
	}
	return stdout.Bytes(), nil
}

// buffer takes so much and no more.
type buffer struct {
	bytes.Buffer
	most int
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errors.New("too much was printed")
	}
	return b.Buffer.Write(p)
}
