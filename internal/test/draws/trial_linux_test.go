package draws

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// loadFor is how long the same load comes before and after the advised change.
const loadFor = 8 * time.Second

// try takes the first step of an answer, on a server that is started again before and after it, and
// lets the same clients come. A worse outcome counts when it comes twice.
func (w *world) try(do step) (text string, worse bool) {
	as := w.draw.server
	changed, ok := as.apply(do)
	if !ok || changed == as {
		return "", false
	}
	w.clear = func() {
		w.draw.server = as
		w.start()
		w.settle() // what is counted late is not the next draw's
	}
	for range 2 {
		before := w.under(as)
		after := w.under(changed)
		text = fmt.Sprintf("%s %s: %s, before %s", do.setting, do.to, after, before)
		if worse = after.worse(before); !worse {
			return text, false
		}
	}
	return text, true
}

// under is what the clients have of a server of these settings.
func (w *world) under(s server) load {
	w.draw.server = s
	w.start()
	a := new(account)
	ctx, cancel := context.WithTimeout(w.Ctx, loadFor)
	defer cancel()
	var users sync.WaitGroup
	begun := time.Now()
	w.come(ctx, &users, a)
	users.Wait()
	w.unwind()
	w.failed = time.Now()
	if w.draw.handler == "idle" { // who keeps a connection is answered once, at the beginning where there is room
		return a.load(begun)
	}
	return a.load(begun.Add(loadFor / 4))
}

// load are those that ended from a moment on: those before found an empty server.
func (a *account) load(from time.Time) (l load) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.ended {
		switch {
		case e.at.Before(from):
		case e.how == answered:
			l.answered++
		case e.how.failed():
			l.failed++
		}
	}
	return l
}

// tried adds to an outcome what came of the advice.
func (w *world) tried(o outcome, do step) outcome {
	if !w.draw.tried || do == (step{}) {
		return o
	}
	text, worse := w.try(do)
	if text == "" {
		return o
	}
	o.Tried = text
	if worse {
		o.Result, o.Why = wrong, strings.TrimPrefix(o.Why+"; the advice makes it worse: "+text, "; ")
	}
	return o
}
