package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"time"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

const (
	// sendWithin is the time for a log record, storeWithin for a recording.
	sendWithin  = 10 * time.Second
	storeWithin = 2 * time.Minute
	// answerWithin is the time for the answer to a log record that is under way when the archiver is
	// stopped; with --shutdown-grace less than the ten seconds that the DaemonSet's pods have to end.
	answerWithin = 4 * time.Second
)

// deliver sends what waits of a kind, the oldest first, until ctx is done. What fails is tried
// again later: a log record before those behind it, recordings in turns.
func (a *archiver) deliver(ctx context.Context, kind, to string, send func(context.Context, item, []byte) error) {
	wait := backoff{least: time.Second, most: time.Minute}
	var behind uint64
	failed := false
	for ctx.Err() == nil {
		i, ok := a.spool.first(kind, behind)
		switch {
		case !ok && !failed:
			behind = 0
			select {
			case <-a.spool.wake[kind]:
			case <-ctx.Done():
			}
			continue
		case !ok:
			behind, failed = 0, false
			wait.wait(ctx)
			continue
		}
		data, err := a.spool.read(i)
		if err == nil {
			err = send(ctx, i, data)
		} else {
			if !errors.Is(err, fs.ErrNotExist) { // else it was dropped for another
				a.spool.drop(i, oneLine(err.Error()))
			}
			a.spool.done(i)
			continue
		}
		switch {
		case err == nil:
			a.spool.done(i)
			a.metrics.reached.WithLabelValues(to).Set(float64(a.now().Unix()))
			wait.reset()
		case errors.Is(err, errForGood):
			a.log.Error("refused for good", "what", kind, "of", i.owner, "by", to, "err", oneLine(err.Error()))
			a.rejected(kind)
			a.spool.done(i)
		case ctx.Err() == nil:
			a.metrics.retries.WithLabelValues(to).Inc()
			a.log.Warn("it is tried again", "what", kind, "to", to, "waiting", a.spool.waiting(kind), "err", oneLine(err.Error()))
			failed = true
			if kind == kindRecording {
				behind = i.number
			}
			wait.wait(ctx)
		}
	}
}

func (a *archiver) rejected(kind string) {
	if kind == kindEvent {
		a.metrics.records.WithLabelValues(outcomeRejected).Inc()
		return
	}
	a.metrics.recordings.WithLabelValues(outcomeRejected).Inc()
}

func (a *archiver) sendEvent(ctx context.Context, _ item, data []byte) error {
	var e records.Event
	if err := json.Unmarshal(data, &e); err != nil {
		return errors.Join(errForGood, err)
	}
	ctx, cancel := answered(ctx)
	defer cancel()
	if err := a.collector.send(ctx, &e); err != nil {
		return err
	}
	a.metrics.records.WithLabelValues(outcomeSent).Inc()
	return nil
}

// answered outlasts ctx by the time for an answer: a record that the collector may have already is
// not sent again because the archiver was stopped before it knew.
func answered(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(answerWithin, cancel) })
	return longer, func() { forget(); cancel() }
}

func (a *archiver) storeRecording(ctx context.Context, _ item, data []byte) error {
	head, rest, ok := records.CutLine(data)
	var m records.Manifest
	if err := json.Unmarshal(head, &m); err != nil || !ok {
		return fmt.Errorf("%w: damaged in the spool", errForGood)
	}
	if _, ours := parseKey(m.Key); !ours {
		return fmt.Errorf("%w: %.300q is no key of a recording", errForGood, m.Key)
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	outcome, err := a.store.put(ctx, &m, rest)
	if err != nil {
		return err
	}
	a.metrics.recordings.WithLabelValues(outcome).Inc()
	a.log.Info("a recording is in the bucket", "key", m.Key, "outcome", outcome, "bytes", len(rest))
	return nil
}

// backoff is between two attempts: twice as long after each failure, at random within
// its upper half, so that the archivers of a cluster do not come back all at once.
type backoff struct{ least, most, next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait returns when it is time for another attempt, false when ctx is done.
func (b *backoff) wait(ctx context.Context) bool {
	b.next = min(max(b.least, 2*b.next), b.most)
	t := time.NewTimer(b.next/2 + rand.N(b.next/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
