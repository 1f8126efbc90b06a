package namespace

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// name is the address as people know it, v4-mapped ones unmapped. An interface
// that is not known yet is called by its index: the sample path asks for nothing.
func (s *sampler) name(l *sockdiag.ListenerID) model.ListenerID {
	id := model.ListenerID{NetNS: s.id, Address: l.Address()}
	if l.Interface == 0 {
		return id
	}
	s.facts.bound = true
	name, ok := s.facts.devices[l.Interface]
	if !ok {
		s.facts.unnamed = true
		name = strconv.FormatUint(uint64(l.Interface), 10)
	}
	id.Device = name
	return id
}
