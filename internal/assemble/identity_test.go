package assemble

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Who stands at an address is another one when all its sockets are others, or
// its process is.
func TestWhoStandsAtTheAddress(t *testing.T) {
	type seen struct {
		inodes []uint32
		pid    int // 0: not known
		start  uint64
	}
	for name, tt := range map[string]struct {
		scans []seen
		same  bool // of the last one, as the one before
	}{
		"nothing has changed":              {[]seen{{[]uint32{7}, 42, 1}, {[]uint32{7}, 42, 1}}, true},
		"a restart":                        {[]seen{{[]uint32{7}, 42, 1}, {[]uint32{8}, 43, 2}}, false},
		"the process listens again":        {[]seen{{[]uint32{7}, 42, 1}, {[]uint32{8}, 42, 1}}, false},
		"a restart under the same number":  {[]seen{{[]uint32{7}, 42, 1}, {[]uint32{7}, 42, 2}}, false},
		"socket activation":                {[]seen{{[]uint32{7}, 42, 1}, {[]uint32{7}, 43, 2}}, false},
		"the owner is found later":         {[]seen{{[]uint32{7}, 0, 0}, {[]uint32{7}, 43, 2}}, true},
		"the owner is not found this time": {[]seen{{[]uint32{7}, 42, 1}, {[]uint32{7}, 0, 0}}, true},
		"and then it is another one":       {[]seen{{[]uint32{7}, 42, 1}, {[]uint32{7}, 0, 0}, {[]uint32{7}, 43, 2}}, false},
		"one of a group closes":            {[]seen{{[]uint32{7, 8}, 42, 1}, {[]uint32{8}, 42, 1}}, true},
		"one joins the group":              {[]seen{{[]uint32{8}, 42, 1}, {[]uint32{9, 8}, 42, 1}}, true},
		"the whole group is another":       {[]seen{{[]uint32{7, 8}, 0, 0}, {[]uint32{9, 10}, 0, 0}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &history{}
			now := time.Unix(1_700_000_000, 0)
			for i, s := range tt.scans {
				c := &facts.Listening{}
				for _, inode := range s.inodes {
					c.Members = append(c.Members, sockdiag.Listener{Inode: inode})
				}
				if s.pid != 0 {
					c.Owner = &owner.Process{PID: s.pid, StartTime: s.start}
				}
				a.setListener(&facts.Watched{Listening: c}, now.Add(time.Duration(i)*time.Second))
				if i < len(tt.scans)-1 {
					l := shown(8192, 0, 0, 6)
					a.moments.push(moment{now, l}, time.Second)
					a.hysteresis.Apply(now, model.Verdict{Status: model.StatusSaturated})
				}
			}
			shownNow := a.hysteresis.Apply(now.Add(time.Second), model.Verdict{}).Status
			if tt.same {
				require.Equal(t, now, a.since)
				require.NotNil(t, a.moments.last.Listener)
				require.Equal(t, model.StatusSaturated, shownNow, "held")
				return
			}
			require.Greater(t, a.since, now)
			require.Nil(t, a.moments.last.Listener)
			require.NotNil(t, a.previous.Listener, "for the drops that are its own")
			require.Equal(t, model.StatusOK, shownNow)
		})
	}
}
