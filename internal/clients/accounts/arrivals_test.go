package accounts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestArrivals(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	after := func(begun ...uint64) *Account { // at each second
		a := &Account{}
		for i, n := range begun {
			a.Totals.Begun = n
			a.Remember(start.Add(time.Duration(i)*time.Second), time.Minute, 0)
		}
		return a
	}
	const s = time.Second
	for name, tt := range map[string]struct {
		begun []uint64
		want  *model.Arrivals
	}{
		"nobody":               {[]uint64{7, 7, 7}, nil},
		"a burst":              {[]uint64{0, 0, 60, 60, 60}, &model.Arrivals{Clients: 60, First: 2 * s, Last: 2 * s, Answered: -1}},
		"seen in two halves":   {[]uint64{0, 0, 40, 60, 60}, &model.Arrivals{Clients: 60, First: 2 * s, Last: s, Answered: -1}},
		"the second burst":     {[]uint64{0, 60, 60, 60, 60, 60, 90, 90}, &model.Arrivals{Clients: 30, First: s, Last: s, Answered: -1}},
		"a stream":             {[]uint64{0, 10, 20, 30, 40}, &model.Arrivals{Clients: 40, First: 3 * s, Last: 0, Answered: -1}},
		"one every two second": {[]uint64{0, 1, 1, 2, 2, 3, 3}, &model.Arrivals{Clients: 3, First: 5 * s, Last: s, Answered: -1}},
	} {
		a := after(tt.begun...)
		require.Equal(t, tt.want, a.arrivals(start.Add(time.Duration(len(tt.begun)-1)*s), false), name)
	}

	a := after(0, 60, 60)
	a.Totals.Answers.Answered = 4
	a.Remember(start.Add(3*s), time.Minute, 0)
	require.Equal(t, &model.Arrivals{Clients: 60, First: 4 * s, Last: 4 * s, Answered: 2 * s}, a.arrivals(start.Add(5*s), false))

	a = &Account{} // a check each second is in no burst, and joins none with another
	for i, n := range []uint64{1, 2, 3, 64, 65, 66, 67} {
		a.Totals.Begun, a.Totals.Answers.Checks = n, uint64(i+1)
		a.Remember(start.Add(time.Duration(i)*time.Second), time.Minute, 0)
	}
	require.Equal(t, &model.Arrivals{Clients: 60, First: 3 * s, Last: 3 * s, Answered: -1}, a.arrivals(start.Add(6*s), true))
}
