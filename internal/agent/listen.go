package agent

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"

	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// listen opens the listeners that the options name. Each has its own bound on
// connections.
func listen(o Options, ledger *shares.Ledger) ([]*boundedListener, error) {
	if o.SystemdSocket {
		passed, err := activation.Listeners()
		if err == nil && len(passed) == 0 {
			err = fmt.Errorf("systemd passed no socket")
		}
		return bounded(passed, ledger), err
	}
	var out []net.Listener
	for _, address := range o.Listen {
		l, err := listenOn(address)
		if err != nil {
			for _, l := range out {
				_ = l.Close()
			}
			return nil, err
		}
		out = append(out, l)
	}
	return bounded(out, ledger), nil
}

// listenOn takes an address, or vsock://:PORT.
func listenOn(address string) (net.Listener, error) {
	port, virtual := strings.CutPrefix(address, "vsock://:")
	if !virtual {
		return net.Listen("tcp", address) //nolint:noctx // it does not wait
	}
	n, err := strconv.ParseUint(port, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%q: give vsock://:PORT", address)
	}
	return vsock.Listen(uint32(n), nil)
}

func bounded(listeners []net.Listener, ledger *shares.Ledger) []*boundedListener {
	out := make([]*boundedListener, len(listeners))
	for i, l := range listeners {
		out[i] = newBoundedListener(l, ledger)
	}
	return out
}
