package story

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
)

func TestWhatWasFullFirst(t *testing.T) {
	began := at(60)
	s := &Story{Header: recording.Header{Began: began}}
	for i := range int64(90) {
		p := recording.UnknownPoint(at(0).Unix() + i)
		p.Used = [...]int8{int8(min(100, i)), 100, 3, -1}
		if i == 30 {
			p.Used[1] = 99
		}
		if i >= 65 {
			p.Used[0] = 100
		}
		s.Points = append(s.Points, p)
	}
	require.Equal(t, []string{"all threads were busy from 22:13:51", "all of maxConnections were in use from 22:14:25"}, s.filled())
	s.Points = s.Points[31:]
	require.Equal(t, "all threads were busy when the recording begins", s.filled()[0])
}

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

var start = time.Unix(1_700_000_000, 0)
