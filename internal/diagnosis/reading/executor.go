package reading

import "github.com/tcpdiag/tcpdiag/internal/model"

// ShareExecutors gives to the connectors of a process that have one Executor together
// (an <Executor> of server.xml: StandardThreadExecutor) what all of them use of it.
// Of a connector that is not among the listeners it is not known. The connectors are
// replaced, not changed.
func ShareExecutors(listeners []model.Listener) {
	type pool struct {
		pid  int
		name string
	}
	users := make(map[pool][]*model.Listener)
	for i := range listeners {
		l := &listeners[i]
		if l.Process != nil && l.Connector != nil && l.Connector.Executor != "" {
			p := pool{l.Process.PID, l.Connector.Executor}
			users[p] = append(users[p], l)
		}
	}
	for _, sharing := range users {
		all := max(len(sharing), sharing[0].Connector.ExecutorUsers)
		if all < 2 {
			continue
		}
		use := usedTogether(sharing)
		if use.Connectors = all; len(sharing) < all {
			use.Busy = nil
		}
		for _, l := range sharing {
			c := *l.Connector
			c.Shared = use
			l.Connector = &c
		}
	}
}

func usedTogether(listeners []*model.Listener) *model.SharedPool {
	out := &model.SharedPool{Connectors: len(listeners), Busy: new(int)}
	for _, l := range listeners {
		out.Waiting += WaitingRequests(l)
		busy, seen := BusyThreads(l)
		if !seen {
			out.Busy = nil
		}
		if out.Busy != nil {
			*out.Busy += busy
		}
	}
	return out
}
