package observer

import "github.com/tcpdiag/tcpdiag/internal/sockdiag"

// few are the connections of one walk, as long as they are few.
type few struct {
	ids    []sockdiag.ConnectionID
	number int  // of all
	beyond bool // there are more than are remembered, or one that cannot be asked for
}

// begin begins another walk. Where the latest has found more than most none is
// remembered before they have become fewer.
func (f *few) begin(most int) {
	if f.beyond = f.number > most; f.beyond {
		f.ids = nil
	}
	f.ids, f.number = f.ids[:0], 0
}

func (f *few) add(s *sockdiag.Socket, most int) {
	f.number++
	switch {
	case f.beyond:
	case s.Cookie == 0 || f.number > most:
		f.beyond, f.ids = true, nil
	default:
		f.ids = append(f.ids, s.ID())
	}
}
