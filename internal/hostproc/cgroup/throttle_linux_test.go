package cgroup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestThrottle(t *testing.T) {
	var th Throttle
	th.add([]byte("usage_usec 99\nnr_periods 3\nnr_throttled 2\nthrottled_usec 77\n"))
	th.add([]byte("nr_periods 5\nnr_throttled 1\nthrottled_time 1000\n"))
	th.setUsed([]byte("usage_usec 99\n"))
	require.Equal(t, Throttle{Periods: 5, Throttled: 3, Withheld: 78 * time.Microsecond, Used: 99 * time.Microsecond}, th)
	th.setUsed([]byte("123456789\n"))
	require.Equal(t, 123456789*time.Nanosecond, th.Used)
}

func FuzzThrottle(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("nr_periods 3\nnr_throttled 2\nthrottled_usec 77\nusage_usec 5\n"))
	m.Fuzz(func(t *testing.T, data []byte) {
		var throttle Throttle
		throttle.add(data)
		throttle.setUsed(data)
		if throttle.Withheld < 0 || throttle.Used < 0 {
			t.Fatalf("%+v", throttle)
		}
	})
}
