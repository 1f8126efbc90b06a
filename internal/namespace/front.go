package namespace

import (
	"errors"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/netns"
)

// front counts what is lost in front of the listeners of a namespace: by its connection
// tracking and by the rules of its netfilter. What may not be read, or is not there, is
// left out: no counter says then what loses clients there.
type front struct {
	conntrack *netstat.ConntrackFile
	filter    *netns.Filter
	asked     bool // conntrack has no file: filter is asked for it
}

// open is for the inside of the namespace.
func (f *front) open(proc hostproc.FS) {
	var err error
	if f.conntrack, err = netstat.OpenConntrack(proc, hostproc.CallingThread); err != nil {
		f.conntrack, f.asked = nil, true
	}
	if f.filter, err = netns.OpenFilter(); err != nil {
		f.filter = nil
	}
}

func (f *front) read(out map[string]uint64) {
	if f.conntrack != nil && f.conntrack.Read(out) != nil {
		f.asked = true
	}
	if f.filter == nil {
		return
	}
	err := f.filter.Rules(out)
	if err == nil && f.asked {
		err = f.filter.Conntrack(out)
	}
	if err != nil { // it may not be asked, or the kernel has none
		_ = f.filter.Close()
		f.filter = nil
	}
}

func (f *front) close() error {
	var errs []error
	if f.conntrack != nil {
		errs = append(errs, f.conntrack.Close())
	}
	if f.filter != nil {
		errs = append(errs, f.filter.Close())
	}
	*f = front{}
	return errors.Join(errs...)
}
