package reading

import "github.com/tcpdiag/tcpdiag/internal/model"

// Learned is the snapshot before with the settings that are known by now, of the same
// process: they were in force then, too. A busy machine takes longer to read them than to
// count connections, and the limit that was reached all the time would else seem to have
// been reached only now. What the connector was doing stays that snapshot's.
func Learned(before, now *model.Listener) *model.Listener {
	if before == nil || !sameProcess(before.Process, now.Process) || now.Connector == nil || now.Connector.Shared != nil {
		return before
	}
	was := model.Connector{}
	if before.Connector != nil {
		was = *before.Connector
	}
	if was.MaxThreads != nil || was.MaxConnections != nil || was.Shared != nil {
		return before
	}
	l, c := *before, *now.Connector
	c.PoolThreads, c.BusyThreads, c.CurrentConnections = was.PoolThreads, was.BusyThreads, was.CurrentConnections
	l.Connector = &c
	return &l
}

func sameProcess(a, b *model.Process) bool {
	return a != nil && b != nil && a.PID == b.PID && a.StartTime == b.StartTime
}
