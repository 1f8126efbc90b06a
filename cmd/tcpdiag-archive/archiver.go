package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
)

// archiver reads the folder and sends what is in the spool.
type archiver struct {
	dir       string
	cluster   string
	interval  time.Duration
	grace     time.Duration
	stale     time.Duration
	bucket    *url.URL   // nil: none
	collector *collector // nil: none
	store     *store     // nil: none
	spool     *spool
	cursor    *cursor
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time

	following map[string]*records.Recording
	said      map[string]bool // recordings that cannot be opened
	unopened  bool            // the folder could not be opened the last time
	unspooled bool            // the spool could not be written to the last time
	unsaved   bool            // the cursor is behind what is in the spool
	beat      func()
}

// run reads and sends until ctx is done, then for a moment more: an agent that is stopped
// at the same time writes the ends of its recordings.
func (a *archiver) run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, sending := errgroup.WithContext(sending)
	if a.collector != nil {
		g.Go(func() error { a.deliver(sending, kindEvent, endCollector, a.sendEvent); return nil })
	}
	if a.store != nil {
		g.Go(func() error { a.deliver(sending, kindRecording, endBucket, a.storeRecording); return nil })
	}
	tick := time.NewTicker(a.interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		a.poll()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	a.drain(tick.C)
	stop()
	return g.Wait()
}

// drain reads on until nothing is being recorded and nothing waits, at most for the grace.
func (a *archiver) drain(tick <-chan time.Time) {
	for until := time.After(a.grace); ; {
		a.poll()
		waiting := a.collector != nil && a.spool.waiting(kindEvent) > 0 || a.store != nil && a.spool.waiting(kindRecording) > 0
		if !waiting && len(a.following) == 0 {
			return
		}
		select {
		case <-tick:
		case <-until:
			return
		}
	}
}

// poll takes what is new in the folder into the spool.
func (a *archiver) poll() {
	a.beat()
	library, ids, err := a.open()
	if err != nil {
		if !a.unopened {
			a.log.Warn("the folder of the incidents cannot be read; it is tried again", "err", err)
		}
		a.unopened = true
		return
	}
	defer library.Close()
	if a.unopened {
		a.log.Info("the folder of the incidents is there")
	}
	a.unopened = false
	changed := a.forget(ids) || a.unsaved
	for _, id := range ids {
		if a.cursor.Recordings[id].Done {
			continue
		}
		changed = a.follow(library, id) || changed
	}
	if !changed {
		return
	}
	err = a.cursor.save(a.spool)
	a.logSpoolState(err)
	if a.unsaved = err != nil; !a.unsaved {
		a.spool.release()
	}
}

func (a *archiver) open() (*incident.Library, []string, error) {
	library, err := incident.OpenLibrary(a.dir)
	if err != nil {
		return nil, nil, err
	}
	ids, err := library.IDs()
	if err != nil {
		library.Close()
		return nil, nil, err
	}
	return library, ids, nil
}

// logSpoolState says once that the spool cannot be written to, and once that it can again.
func (a *archiver) logSpoolState(err error) {
	switch {
	case err != nil && !a.unspooled:
		a.unspooled = true
		a.log.Error("the spool cannot be written to; what is new waits in the agent's folder, and it is tried again", "err", err)
	case err == nil && a.unspooled:
		a.unspooled = false
		a.log.Info("the spool can be written to again")
	}
}

// forget leaves out what the agent removed a day ago.
func (a *archiver) forget(ids []string) (changed bool) {
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		there[id] = true
	}
	for id, p := range a.cursor.Recordings {
		switch {
		case there[id] == (p.Missing == nil):
			if p.Missing == nil || a.now().Sub(*p.Missing) < rememberMissing {
				continue
			}
			delete(a.cursor.Recordings, id)
		case there[id]:
			p.Missing = nil
			a.cursor.Recordings[id] = p
		default:
			p.Missing = new(a.now())
			a.cursor.Recordings[id] = p
		}
		changed = true
	}
	changed = a.cursor.forgetMissing() || changed
	for id := range a.said {
		if !there[id] {
			delete(a.said, id)
		}
	}
	for id := range a.following {
		if !there[id] {
			a.leave(id)
		}
	}
	return changed
}

// leave ends following a recording. Where it is still there it is read from its beginning
// another time, and what the cursor has is passed over.
func (a *archiver) leave(id string) {
	if f := a.following[id]; f != nil {
		f.Close()
		delete(a.following, id)
	}
}

// follow takes what is new of a recording, and reports whether anything was.
func (a *archiver) follow(library *incident.Library, id string) (changed bool) {
	f := a.following[id]
	if f == nil {
		file, err := library.Open(id)
		if err != nil {
			if !a.said[id] { // it may be readable another time
				a.said[id] = true
				a.unreadable(id, err)
			}
			return false
		}
		f = records.Follow(id, a.cluster, file, a.now())
		a.following[id] = f
	}
	events, ended, err := f.Read(a.now())
	for i := range events {
		if !a.spoolEvent(f, &events[i]) {
			return changed
		}
		changed = true
	}
	stale := a.now().Sub(f.Written) > a.stale
	switch {
	case err != nil:
		a.unreadable(id, err)
		a.finished(id)
		return true
	case !ended && !stale:
		return changed
	case f.Empty():
		a.unreadable(id, errors.New("it holds no frame"))
		a.finished(id)
		return true
	}
	return a.finish(f) || changed
}

func (a *archiver) unreadable(id string, err error) {
	a.metrics.recordings.WithLabelValues(outcomeUnreadable).Inc()
	a.log.Warn("a recording cannot be read", "id", id, "err", err)
}

func (a *archiver) finished(id string) {
	p := a.cursor.Recordings[id]
	p.Done = true
	a.cursor.Recordings[id] = p
	a.leave(id)
}

// spoolEvent puts an event into the spool, unless an earlier run did.
func (a *archiver) spoolEvent(f *records.Recording, e *records.Event) bool {
	p := a.cursor.Recordings[f.ID]
	if e.Number < p.Events {
		return true
	}
	if a.collector != nil {
		e.Object = a.location(f)
		data, err := json.Marshal(e)
		if err == nil {
			err = a.spool.put(kindEvent, e.Origin.Owner(), data)
		}
		if err != nil {
			a.logSpoolState(err)
			a.leave(f.ID)
			return false
		}
	}
	p.Events = e.Number + 1
	a.cursor.Recordings[f.ID] = p
	return true
}

func (a *archiver) location(f *records.Recording) string {
	if a.bucket == nil {
		return ""
	}
	return locationOf(a.bucket, f.Key())
}

// finish puts the recording and the event of its end into the spool.
func (a *archiver) finish(f *records.Recording) bool {
	data, err := f.Whole()
	if err != nil {
		a.unreadable(f.ID, err)
		return false
	}
	story, err := story.Read(bytes.NewReader(data))
	if err != nil {
		a.unreadable(f.ID, err)
		a.finished(f.ID)
		return true
	}
	story.Summary.ID = f.ID
	story.Summary.CutOff()
	if a.store != nil {
		m := records.NewManifest(f, story, data)
		text, err := m.Spooled(data)
		if err == nil {
			err = a.spool.put(kindRecording, f.Owner(), text)
		}
		if err != nil {
			a.logSpoolState(err)
			a.leave(f.ID)
			return false
		}
	}
	if !a.spoolEvent(f, f.End(story)) {
		return false
	}
	a.log.Info("an incident has ended", "id", f.ID, "status", story.Summary.Status.String(), "cause", string(story.Summary.Cause))
	a.finished(f.ID)
	return true
}
