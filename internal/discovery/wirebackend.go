package discovery

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds of the servers that a configuration names.
const (
	maxBackends = 4
	maxAt       = 32
	maxPorts    = 8
	maxPoolSize = 100_000
)

// wireBackend is a model.Backend.
type wireBackend struct {
	Name  string
	At    []netip.AddrPort `json:",omitempty"`
	Ports []uint16         `json:",omitempty"`
	Pool  *model.Pool      `json:",omitempty"`
}

// newWireBackends leaves out what is beyond the bounds.
func newWireBackends(list []model.Backend) []wireBackend {
	var out []wireBackend
	for _, b := range list[:min(len(list), maxBackends)] {
		w := wireBackend{b.Name, b.At[:min(len(b.At), maxAt)], b.Ports[:min(len(b.Ports), maxPorts)], nil}
		if b.Pool != nil {
			w.Pool = new(*b.Pool)
			w.Pool.Size.Source, w.Pool.Size.Note = clean(w.Pool.Size.Source), clean(w.Pool.Size.Note)
		}
		out = append(out, w)
	}
	return out
}

func (w *wireBackend) backend() model.Backend {
	return model.Backend{Name: w.Name, At: w.At, Ports: w.Ports, Pool: w.Pool}
}

// checkBackends holds them to what package springboot makes.
func checkBackends(list []wireBackend) error {
	if len(list) > maxBackends {
		return fmt.Errorf("%w: too many servers", errAnswer)
	}
	for i := range list {
		if !list[i].valid() {
			return fmt.Errorf("%w: a server that the configuration names", errAnswer)
		}
	}
	return nil
}

func (w *wireBackend) valid() bool {
	switch {
	case !springboot.Plain(w.Name), len(w.At) > maxAt, len(w.Ports) > maxPorts, slices.Contains(w.Ports, 0):
		return false
	case slices.ContainsFunc(w.At, func(a netip.AddrPort) bool { return !a.IsValid() || a.Port() == 0 || a.Addr().Zone() != "" }):
		return false
	case w.Pool == nil:
		return true
	}
	size := &w.Pool.Size
	return size.Value >= 1 && size.Value <= maxPoolSize && knownKind(size.Kind) &&
		springboot.Plain(w.Pool.Library) && springboot.Plain(w.Pool.Setting) &&
		size.Source == clean(size.Source) && size.Note == clean(size.Note)
}
