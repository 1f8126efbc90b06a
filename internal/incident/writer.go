package incident

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// writer writes the recordings: to its directory, and what finds no room there to
// memory. Only its own goroutine touches the disk to write.
type writer struct {
	options Options
	shelf   shelf
	folder  atomic.Pointer[folder] // nil: none, or not yet
	going   map[*open]*writing
	share   *shares.Resource
	tried   time.Time // when the directory was last opened without success

	lost, failures atomic.Uint64
}

// writing is one that is being written.
type writing struct {
	*entry
	encoder recording.Encoder
	file    *os.File // nil: in memory
	failed  bool     // the latest record could not be written
}

// recoverWithin is how long recordings without an end may be read when the directory is opened; of those
// with one only the last record is.
const recoverWithin = 2 * time.Second

// retryFolder is after how long a directory that cannot be used is tried again.
const retryFolder = time.Minute

func newWriter(o Options) *writer {
	return &writer{options: o, share: o.Shares.Resource("recordings"), going: make(map[*open]*writing)}
}

// run writes until there are no more jobs. Without any it checks every minute
// whether something is too old.
func (w *writer) run(jobs <-chan job) {
	w.prepare()
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case j, more := <-jobs:
			if !more {
				w.close()
				return
			}
			w.write(j)
		case <-tick.C:
			w.prune()
		}
	}
}

// prepare opens the directory and lists what is in it.
func (w *writer) prepare() {
	if w.options.Dir == "" || w.folder.Load() != nil || !w.tried.IsZero() && time.Since(w.tried) < retryFolder {
		return
	}
	w.tried = time.Now()
	f, err := openFolder(w.options.Dir, w.options.Group)
	if err != nil {
		w.fail("incidents are kept in memory: the directory cannot be used", err)
		return
	}
	if err := w.list(f); err != nil {
		f.close()
		w.fail("incidents are kept in memory: the directory cannot be read", err)
		return
	}
	w.folder.Store(f)
	w.prune()
}

// list puts what was recorded before on the shelf. Of more than may be kept the
// oldest are removed unread.
func (w *writer) list(f *folder) error {
	ids, err := f.ids()
	if err != nil {
		return err
	}
	if extra := len(ids) - w.options.Limits.Files; extra > 0 {
		for _, id := range ids[:extra] {
			if err := f.remove(id); err != nil {
				w.fail("an old incident cannot be removed", err)
				break
			}
		}
		ids = ids[extra:]
	}
	var found []*entry
	deadline := time.Now().Add(recoverWithin)
	for _, id := range slices.Backward(ids) { // the latest are the likeliest that anybody asks for
		e, err := f.recover(id, deadline)
		if err != nil {
			w.options.Log.Warn("an incident cannot be read", "id", id, "err", err)
			continue
		}
		found = append(found, e)
	}
	w.shelf.found(found)
	return nil
}

func (w *writer) fail(what string, err error) {
	w.failures.Add(1)
	w.options.Log.Warn(what, "err", err)
}

// prune removes what the limits leave no room for.
func (w *writer) prune() {
	aged := w.options.Limits.Age
	for _, e := range w.shelf.surplus(w.options.Limits, w.options.Now()) {
		if w.options.Now().Sub(e.LastSeen) <= aged {
			w.share.Evicted(e.owner())
		}
		if f := w.folder.Load(); e.memory == nil && f != nil {
			if err := f.remove(e.ID); err != nil {
				w.fail("an old incident cannot be removed", err)
				return
			}
		}
		w.shelf.remove(e)
	}
}

func (w *writer) write(j job) {
	switch r := w.going[j.of]; {
	case j.begin != nil:
		w.begin(j.of, j.begin)
	case r == nil:
	case j.frame != nil:
		w.frame(r, j)
	case j.tick != nil:
		w.tick(r, j.tick)
	case j.end != nil:
		w.end(r, j.end)
		delete(w.going, j.of)
	}
}

// begin makes the file; without one the recording is kept in memory.
func (w *writer) begin(c *open, h *recording.Header) {
	w.prepare()
	r := &writing{entry: w.shelf.add(h)}
	if err := w.create(r); err != nil {
		if !errors.Is(err, errNoFolder) {
			w.fail("an incident is kept in memory", err)
		}
		w.shelf.update(func() { r.memory = new(remembered) })
	}
	w.going[c] = r
	text, err := recording.Line{Begin: h}.Encode()
	if err == nil {
		err = w.append(r, text, w.most(r))
	}
	if err != nil {
		w.fail("an incident is not recorded", err)
	}
	w.options.Log.Info("an incident begins", "id", r.ID, "listener", r.Address)
	w.prune()
}

func (w *writer) create(r *writing) (err error) {
	f := w.folder.Load()
	if f == nil {
		return errNoFolder
	}
	r.file, err = f.create(r.ID)
	return err
}

func (w *writer) frame(r *writing, j job) {
	if j.after || r.failed {
		r.encoder.Gap()
	}
	text, err := r.encoder.Frame(j.frame)
	if err == nil {
		err = w.append(r, text, w.framesOf(r))
	}
	if err != nil {
		w.lost.Add(1)
		w.failed(r, err)
		w.tick(r, &recording.Tick{At: j.frame.At, Points: j.frame.Points, Samples: j.frame.Samples})
		w.shelf.update(func() { r.Count(&j.frame.Counted) })
		return
	}
	r.failed = false
	w.shelf.update(func() { r.See(j.frame) })
}

// failed says the first of many failures, and to readers that the recording is still being written.
func (w *writer) failed(r *writing, err error) {
	if f := w.folder.Load(); f != nil && r.file != nil {
		f.touch(r.ID)
	}
	if !r.failed && !errors.Is(err, errFull) {
		w.fail("an incident has a gap", err)
	}
	r.failed = true
}

// tick adds seconds and totals. They have room when there is none for frames any more.
func (w *writer) tick(r *writing, t *recording.Tick) {
	text, err := recording.Line{Tick: t}.Encode()
	if err == nil {
		err = w.append(r, text, w.most(r))
	}
	if err != nil {
		w.failed(r, err)
	}
	w.shelf.update(func() { r.Pass(t) }) // also what has no place in the recording is counted
}

// most is how many bytes a recording may take.
func (w *writer) most(r *writing) int64 {
	if r.file != nil {
		return recording.MaxRecording
	}
	return w.shelf.room()
}

// framesOf is how many of them its frames may take. The first always has room: it
// has the minute before.
func (w *writer) framesOf(r *writing) int64 {
	if r.Frames == 0 {
		return max(maxRemembered, w.most(r)*3/4)
	}
	return w.most(r) * 3 / 4
}

// append writes a record whole or not at all.
func (w *writer) append(r *writing, text []byte, most int64) error {
	if r.size+int64(len(text)) > most {
		return errFull
	}
	if r.file == nil {
		w.shelf.update(func() { r.memory.add(text) })
	} else if err := w.toFile(r, text); err != nil {
		return err
	}
	w.shelf.update(func() { r.size += int64(len(text)) })
	return nil
}

func (w *writer) toFile(r *writing, text []byte) error {
	if _, err := r.file.WriteAt(text, r.size); err != nil {
		_ = r.file.Truncate(r.size) // a record that was begun is none
		return fmt.Errorf("%s: %w", nameOf(r.ID), err)
	}
	return nil
}

func (w *writer) end(r *writing, e *recording.End) {
	w.shelf.update(func() { r.Ended, r.Reason = e.At, e.Reason })
	e.Summary = r.Summary
	text, err := recording.Line{End: e}.Encode()
	if err == nil && r.file != nil {
		err = w.toFile(r, text) // also where there is no room for more frames
	} else if err == nil {
		w.shelf.update(func() { r.memory.add(text) })
	}
	if err != nil {
		w.fail("the end of an incident is not recorded", err)
	}
	if r.file != nil {
		_ = r.file.Sync()
		_ = r.file.Close()
	}
	w.shelf.update(func() { r.going = false; r.size += int64(len(text)) })
	w.options.Log.Info("an incident ended", "id", r.ID, "listener", r.Address, "status", r.Status.String(), "cause", string(r.Cause), slog.Uint64("dropped_packets", r.Dropped))
	w.prune()
}

func (w *writer) close() {
	for _, r := range w.going {
		if r.file != nil {
			_ = r.file.Close()
		}
	}
	if f := w.folder.Swap(nil); f != nil {
		f.close()
	}
}

// open opens a recording that is on the shelf.
func (w *writer) open(id string) (io.ReadCloser, error) {
	memory, known := w.shelf.of(id)
	switch f := w.folder.Load(); {
	case !known:
		return nil, ErrUnknown
	case memory != nil:
		return io.NopCloser(memory), nil
	case f == nil:
		return nil, errNoFolder
	default:
		file, err := f.open(id)
		if err != nil {
			return nil, fmt.Errorf("incident %s: %w", id, err)
		}
		return file, nil
	}
}
