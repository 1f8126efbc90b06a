package kube

import (
	"errors"
	"io"
	"net/http"
)

const (
	// mostDocument bounds an answer: the API server's have some megabytes (a page of pods).
	mostDocument = 64 << 20
	// mostComplaint bounds one that is an error: client-go reads it whole.
	mostComplaint = 1 << 20
)

// guard is beneath every request to the API server, and beneath what adds the user's credentials to
// it. What a pod answers through the proxy comes as the server's own answer: a redirect would be
// followed, and the credentials added again, to wherever the pod likes.
type guard struct{ next http.RoundTripper }

// errRedirect is a redirect, from whomever it comes.
var errRedirect = errors.New("what answers there sends on to another address (a redirect), which is not followed: it is no tcpdiag agent")

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode / 100 {
	case 1: // a stream
	case 2:
		resp.Body = limited{io.LimitReader(resp.Body, mostDocument), resp.Body}
	case 3:
		_ = resp.Body.Close()
		return nil, errRedirect
	default:
		resp.Body = limited{io.LimitReader(resp.Body, mostComplaint), resp.Body}
	}
	return resp, nil
}

// limited is a body of which so much is read.
type limited struct {
	io.Reader
	io.Closer
}
