package incident

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// packed is a point as a ring keeps it: 36 bytes, and no pointer for the garbage
// collector.
type packed struct {
	at                     uint32 // Unix seconds, until 2106
	drops                  uint32
	peak, inside, inFlight int32
	used                   [recording.NumStages]int8
	status, cause          uint8 // cause: its place in causes
	clients                recording.Rate
}

// causes are those that a packed point may have, the first for none.
func causes() []model.Cause { return append([]model.Cause{model.CauseNone}, model.DropCauses()...) }

func packPoint(p recording.Point) packed {
	return packed{
		at: uint32(p.At), drops: p.Drops, peak: p.Peak, inside: p.Inside, inFlight: p.InFlight,
		used: p.Used, status: uint8(p.Status), cause: uint8(max(0, slices.Index(causes(), p.Cause))), clients: p.Clients,
	}
}

func (s packed) unpack(causes []model.Cause) recording.Point {
	return recording.Point{
		At: int64(s.at), Status: model.Status(s.status), Drops: s.drops, Cause: causes[s.cause],
		Peak: s.peak, Inside: s.inside, InFlight: s.inFlight, Used: s.used, Clients: s.clients,
	}
}
