package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	api "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Denied is a right that the user lacks.
type Denied struct {
	what   access
	reason string
}

func (e *Denied) Error() string {
	where := "in namespace " + e.what.namespace
	if e.what.namespace == "" {
		where = "in all namespaces (-n asks in one)"
	}
	resource := e.what.resource
	if e.what.group != "" {
		resource += "." + e.what.group
	}
	return fmt.Sprintf("you may not %s %s %s", e.what.verb, resource, where)
}

// Namespace is where the right is missing, "" for all.
func (e *Denied) Namespace() string { return e.what.namespace }

// Lacks reports whether an error is of a right that is missing.
func Lacks(err error) (*Denied, bool) {
	var denied *Denied
	ok := errors.As(err, &denied)
	return denied, ok
}

// explain says what a refusal is about. Admission (Pod Security, quota) answers with the
// same code as authorization does, and in its own words.
func explain(err error, what access) error {
	var unsent *url.Error
	switch {
	case err == nil:
		return nil
	case what.deniedBy(err.Error()):
		return &Denied{what, Printable(err)}
	case api.IsUnauthorized(err):
		return errors.New("the API server does not know you: log in again")
	case errors.Is(err, errRedirect):
		return errRedirect
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return &answered{"the API server has not answered in time", err}
	case errors.As(err, &unsent):
		return &answered{"the API server cannot be asked, " + Printable(unsent.Err) + ": kubectl cluster-info and kubectl config current-context say which one it is", err}
	}
	return &answered{Printable(err), err}
}

// deniedBy reads authorization's sentence: a stream's refusal has no other form. A websocket
// is asked for by get.
func (a access) deniedBy(text string) bool {
	if !strings.Contains(text, "is forbidden: User ") {
		return false
	}
	for _, verb := range []string{a.verb, "get"} {
		if strings.Contains(text, fmt.Sprintf(" cannot %s resource %q", verb, a.resource)) {
			return true
		}
	}
	return false
}

// answered is an error whose text is safe to print.
type answered struct {
	text string
	err  error
}

func (e *answered) Error() string { return e.text }
func (e *answered) Unwrap() error { return e.err }

// mostText is how much of another's words is repeated.
const mostText = 500

// Printable is an error's text: others wrote a part of it.
func Printable(err error) string {
	text := model.Printable(strings.ReplaceAll(err.Error(), "\n", " "))
	if len(text) > mostText {
		text = text[:mostText] + "…"
	}
	return text
}
