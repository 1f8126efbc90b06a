package downstream_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const ms = time.Millisecond

// aged is a connection on which both ends have sent data.
func aged(sent, received, acknowledged time.Duration) *sockdiag.Socket {
	return &sockdiag.Socket{State: sockdiag.Established, Inode: 7, HasInfo: true, Info: sockdiag.TCPInfo{
		Size: 216, LastDataSent: sent, LastDataRecv: received, LastAckRecv: acknowledged, DataSegsOut: 5, DataSegsIn: 5,
	}}
}

func TestFlightOf(t *testing.T) {
	with := func(s *sockdiag.Socket, change func(*sockdiag.Socket)) *sockdiag.Socket { change(s); return s }
	tests := map[string]struct {
		s      *sockdiag.Socket
		before downstream.Flight
		want   downstream.Flight
	}{
		"asked after the last answer":              {aged(20*ms, 900*ms, 20*ms), 0, downstream.InFlight},
		"answered":                                 {aged(900*ms, 20*ms, 20*ms), downstream.InFlight, downstream.Idle},
		"connected, nothing asked":                 {with(aged(9*ms, 9*ms, 9*ms), func(s *sockdiag.Socket) { s.Info.DataSegsOut, s.Info.DataSegsIn = 0, 0 }), 0, downstream.Idle},
		"connected, greeted, nothing asked":        {with(aged(90*ms, 80*ms, 80*ms), func(s *sockdiag.Socket) { s.Info.DataSegsOut = 0 }), 0, downstream.Idle},
		"first question, never an answer":          {with(aged(90*ms, 90*ms, 50*ms), func(s *sockdiag.Socket) { s.Info.DataSegsIn = 0 }), 0, downstream.InFlight},
		"question not acknowledged yet":            {with(aged(90*ms, 20*ms, 20*ms), func(s *sockdiag.Socket) { s.SendQ = 40 }), 0, downstream.InFlight},
		"answer that nobody has read yet":          {with(aged(20*ms, 90*ms, 20*ms), func(s *sockdiag.Socket) { s.RecvQ = 40 }), 0, downstream.Idle},
		"tie, acknowledged alone 40 ms later":      {aged(200*ms, 200*ms, 160*ms), 0, downstream.InFlight},
		"tie, acknowledged with the data":          {aged(200*ms, 200*ms, 200*ms), 0, downstream.Unknown},
		"tie, acknowledged a jiffy later":          {aged(200*ms, 200*ms, 196*ms), 0, downstream.Unknown},
		"tie, as before":                           {aged(8*ms, 8*ms, 8*ms), downstream.InFlight, downstream.InFlight},
		"tie, idle before":                         {aged(8*ms, 8*ms, 8*ms), downstream.Idle, downstream.Idle},
		"nobody answers the SYN":                   {&sockdiag.Socket{State: sockdiag.SynSent, Inode: 7}, 0, downstream.Connecting},
		"closed by the peer":                       {&sockdiag.Socket{State: sockdiag.CloseWait, Inode: 7}, downstream.InFlight, downstream.Idle},
		"a kernel that tells no ages":              {&sockdiag.Socket{State: sockdiag.Established, Inode: 7}, 0, downstream.Unknown},
		"a kernel without counts of data, asked":   {with(aged(1*ms, 90*ms, 1*ms), func(s *sockdiag.Socket) { s.Info.Size = 144; s.Info.DataSegsOut, s.Info.DataSegsIn = 0, 0 }), 0, downstream.InFlight},
		"a kernel without counts of data, at rest": {with(aged(90*ms, 1*ms, 1*ms), func(s *sockdiag.Socket) { s.Info.Size = 144; s.Info.DataSegsOut, s.Info.DataSegsIn = 0, 0 }), 0, downstream.Idle},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, downstream.FlightOf(tt.s, tt.before)) })
	}
}
