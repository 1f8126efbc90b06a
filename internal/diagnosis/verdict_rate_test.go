package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
)

func TestAcceptRate(t *testing.T) {
	full := func(oldest time.Duration) look { return tomcat(1, 1, 99).queue(100, oldest) }
	for name, c := range map[string]struct {
		e    symptoms.Input
		want float64 // 0: not known
	}{
		"full, and 100 came in 2.5 s":     {symptoms.Input{Now: full(2500 * time.Millisecond).Listener, Before: full(2500 * time.Millisecond).Listener, Elapsed: time.Second}, 40},
		"one look":                        {symptoms.Input{Now: full(2500 * time.Millisecond).Listener}, 0},
		"still the same oldest":           {symptoms.Input{Now: full(3500 * time.Millisecond).Listener, Before: full(2500 * time.Millisecond).Listener, Elapsed: time.Second}, 0},
		"the queue was not full":          {symptoms.Input{Now: full(time.Second).Listener, Before: tomcat(1, 1, 99).queue(60, time.Second).Listener, Elapsed: time.Second}, 0},
		"the scan has not seen how old":   {symptoms.Input{Now: full(time.Second).Listener, Before: tomcat(1, 1, 99).Listener, Elapsed: time.Second}, 0},
		"two looks at the same moment":    {symptoms.Input{Now: full(time.Second).Listener, Before: full(time.Second).Listener}, 100},
		"the oldest came this very jiffy": {symptoms.Input{Now: full(0).Listener, Before: full(0).Listener, Elapsed: time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := symptoms.Of(c.e, reading.DefaultThresholds())
			rate, ok := advice.AcceptRate(s)
			require.Equal(t, c.want > 0, ok)
			if ok {
				require.InDelta(t, c.want, rate, 1e-9)
			}
		})
	}
}
