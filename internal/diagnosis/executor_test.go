package diagnosis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Six of the eight threads serve one connector and two the other: the Executor is
// full, for both.
func TestSharedExecutor(t *testing.T) {
	shared := func(busy, waiting int) model.Listener {
		l := *tomcat(8, 100, 100).pool(8).inService(busy).waiting(waiting).Listener
		l.Process = &model.Process{PID: 7}
		l.Connector.Executor = "tomcatThreadPool"
		l.Connector.MaxQueue = &model.Setting[int]{Value: 15}
		return l
	}
	listeners := []model.Listener{shared(6, 12), shared(2, 2)}
	before := listeners[0].Connector
	reading.ShareExecutors(listeners)
	require.Nil(t, before.Shared, "what was handed on is not changed")
	for i := range listeners {
		l := &listeners[i]
		require.Equal(t, &model.SharedPool{Connectors: 2, Busy: new(8), Waiting: 14}, l.Connector.Shared)
		v := Judge(symptoms.Input{Now: l, Sysctl: sysctls()}, reading.DefaultThresholds())
		require.Equal(t, model.StatusSaturated, v.Status)
		require.Equal(t, model.CauseMaxThreads, v.Cause, "one place in the queue is free")
	}

	listeners = []model.Listener{shared(6, 12), shared(2, 3)}
	reading.ShareExecutors(listeners)
	v := Judge(symptoms.Input{Now: &listeners[0], Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Equal(t, model.CauseExecutorQueue, v.Cause)

	listeners = []model.Listener{shared(6, 12), shared(2, 3)}
	listeners[1].Connector.TLS = true
	reading.ShareExecutors(listeners)
	require.Nil(t, listeners[0].Connector.Shared.Busy)
	_, known := listeners[0].BusyThreads()
	require.Equal(t, model.BusyShared, known)

	listeners = []model.Listener{shared(6, 12)}
	reading.ShareExecutors(listeners)
	require.Nil(t, listeners[0].Connector.Shared)

	listeners[0].Connector.ExecutorUsers = 2 // the other port is not looked at
	reading.ShareExecutors(listeners)
	_, known = listeners[0].BusyThreads()
	require.Equal(t, model.BusyShared, known)
	v = Judge(symptoms.Input{Now: &listeners[0], Sysctl: sysctls()}, reading.DefaultThresholds())
	require.Equal(t, model.CauseMaxThreads, v.Cause)
	require.NotContains(t, v.Findings[0].Evidence, "6 of 8 threads busy")
}
