package diagnosis

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Whatever a verdict is judged from must be kept, or it cannot be judged again.
func TestBasisHoldsAllEvidence(t *testing.T) {
	basis := reflect.TypeFor[model.Basis]()
	for f := range reflect.TypeFor[symptoms.Evidence]().Fields() {
		if f.Name == "Now" {
			continue
		}
		kept, ok := basis.FieldByName(f.Name)
		require.True(t, ok, "%s is evidence and not part of model.Basis: Evidence.Basis and Again must hand it on", f.Name)
		require.Equal(t, f.Type, kept.Type, f.Name)
	}
}

func TestAgainIsTheVerdictThatWasShown(t *testing.T) {
	th := reading.DefaultThresholds()
	var h Hysteresis
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var before *model.Listener
	held := 0
	for i, now := range []look{
		tomcat(20, 60, 20).inService(5),
		tomcat(20, 60, 20).inService(20).waiting(40).queue(21, time.Second).lost(model.CauseMaxConnections, model.PacketSYN, 7),
		tomcat(20, 60, 20).inService(20).waiting(40).queue(21, 2*time.Second).lost(model.CauseMaxConnections, model.PacketSYN, 9),
		tomcat(20, 60, 20).inService(20).waiting(40).queue(21, 2*time.Second),
		tomcat(20, 60, 20).inService(5), // too short to be better
		nothing(),
		tomcat(20, 60, 20).inService(5),
	} {
		at = at.Add(time.Second)
		e := symptoms.Evidence{Now: now.Listener, Before: before, Elapsed: time.Second, Interval: time.Minute, Sysctl: sysctls()}
		now.Basis = e.Basis()
		if i == 2 { // clients are known after what was judged
			clients := &model.Clients{Observed: time.Minute}
			clients.Outcomes[model.ClientGaveUp] = 3
			now.Losses.Clients = clients
		}
		v := Judge(e, th)
		if before != nil {
			now.Basis.Shown = new(h.Shown())
			shown := h.Apply(at, v)
			if !reflect.DeepEqual(shown, v) {
				held++
			}
			v = shown
		}
		if i == 2 {
			v = withClients(at, now.Listener, time.Minute, th)
			require.Contains(t, v.Summary, "3 clients gave up; 9 packets were dropped")
			require.Contains(t, v.Findings[0].Advice, "the 3 clients for which there was none")
		}
		now.Verdict = v
		again, known := Again(at, now.Listener, th)
		require.True(t, known)
		require.Equal(t, v, again, "look %d", i)
		before = now.Listener
	}
	require.Equal(t, 1, held)
	_, known := Again(at, tomcat(1, 1, 1).Listener, th)
	require.False(t, known)
}
