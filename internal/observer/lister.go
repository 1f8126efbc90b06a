package observer

import (
	"context"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func newLister(src *Sources, now func() time.Time, done func()) *lister {
	discover := func(ctx context.Context, pid int, start uint64, ports []discovery.Listening) (discovery.Connectors, []model.Unavailable) {
		if src.Tomcat == nil {
			return nil, nil
		}
		return src.Tomcat.Discover(ctx, pid, start, ports)
	}
	return &lister{src: src, places: newPlaces(src), connectors: newConnectors(discover, now, done)}
}

// adopt makes the options' namespaces those that are open, and their Actuators
// those that are asked.
func (l *lister) adopt(o *Options) error {
	if err := l.places.adopt(o); err != nil {
		return err
	}
	if l.src.Tomcat != nil {
		l.src.Tomcat.SetActuators(o.actuators())
	}
	return nil
}

// sysctlRest makes the sysctls' rest longer where there are many namespaces: to
// enter one and read its dozen files (0.16 to 0.35 ms) takes less than a tenth of a per
// cent of a core so.
const sysctlRest = 500 * time.Millisecond

// facts reads what is read of the namespaces besides their listeners.
func (l *lister) facts(r *roster) {
	open := 0
	for _, n := range r.places {
		if n.Open() {
			open++
		}
	}
	for _, n := range r.places {
		if n.Open() {
			n.ReadSysctls(r.at, max(rarely, time.Duration(open)*sysctlRest))
			n.ReadSockstat()
		}
	}
}
