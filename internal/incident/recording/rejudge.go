package recording

import (
	"errors"
	"fmt"
	"io"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Rejudged are the moments of a recording with this program's verdicts.
type Rejudged struct {
	reader                 *Reader
	judged, same, unjudged int
	first                  string // where the first differs
}

// Rejudge judges what a reader reads.
func Rejudge(r *Reader) *Rejudged { return &Rejudged{reader: r} }

// All are the moments as they would have been published.
func (j *Rejudged) All() (out []*model.Snapshot, err error) {
	for {
		f, err := j.reader.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, f.Snapshot(&j.reader.Header, j.verdict(f)))
	}
}

// verdict is the recorded one where there is nothing to judge from.
func (j *Rejudged) verdict(f *Frame) model.Verdict {
	v, same, judged := f.Replay()
	switch {
	case !judged:
		j.unjudged++
		return f.Listener.Verdict
	case same:
		j.same++
	case j.first == "":
		j.first = difference(f, &v)
	}
	j.judged++
	return v
}

// difference is what one verdict has that the recorded one has not.
func difference(f *Frame, v *model.Verdict) string {
	at, was := Clock(f.At), &f.Listener.Verdict
	if was.Status == v.Status && was.Cause == v.Cause {
		return fmt.Sprintf("%s: %s %s as recorded, in other words or with other findings", at, v.Status, v.Cause)
	}
	return fmt.Sprintf("%s: recorded %s %s, judged %s %s", at, was.Status, was.Cause, v.Status, v.Cause)
}

// Conclude says whether the verdicts are the recorded ones; the error, where one is not or none
// could be judged.
func (j *Rejudged) Conclude(w io.Writer) error {
	if j.judged == 0 {
		return fmt.Errorf("the recording holds no evidence to judge; records that could not be read: %d", j.reader.Damaged)
	}
	if j.reader.Damaged > 0 || j.reader.Torn {
		fmt.Fprintf(w, "tcpdiag: %d records could not be read; the last was torn: %v\n", j.reader.Damaged, j.reader.Torn)
	}
	if j.same < j.judged {
		return fmt.Errorf("%d of %d verdicts are not the recorded ones, made by tcpdiag %s; the first at %s",
			j.judged-j.same, j.judged, model.Printable(j.reader.Header.Version), model.Printable(j.first))
	}
	fmt.Fprintf(w, "tcpdiag: judged again: all %d verdicts are the recorded ones\n", j.judged)
	return nil
}
