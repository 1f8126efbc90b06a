package evidence

import "fmt"

// unread lists what could not be read.
func (m *Moment) unread() []Missing {
	var out []Missing
	for s, why := range m.cur.Missing {
		if why != "" {
			out = append(out, Missing{Subject(s), why})
		}
	}
	return out
}

// missing lists what would have named the cause.
func (m *Moment) missing() []Missing {
	out := m.unread()
	if why := m.acceptorUnclear(); why != "" {
		out = append(out, Missing{SubjectAcceptor, why})
	}
	return append(out, m.phases.missing()...)
}

// acceptorUnclear says why an acceptor that was read names no cause.
func (m *Moment) acceptorUnclear() string {
	if m.cur.Missing[SubjectAcceptor] != "" {
		return ""
	}
	switch m.cur.Acceptor.Activity {
	case Sleeping:
		return "it sleeps for a set time, and open files are below their limit: the connector is paused"
	case Parked:
		if m.cur.Acceptor.OnStack {
			return "it waits inside the JVM, as for memory"
		}
	case Elsewhere:
		return "it is in a system call other than accept"
	case Unknown:
		return "it was not found"
	}
	if m.MayBeAtSafepoint() {
		return "it sleeps as at the limit of connections, and as at a safepoint, and connections are free"
	}
	if !m.near.taken() {
		return "it was read once"
	}
	return "it was not in the same place in two readings"
}

func (p *Phases) missing() []Missing {
	var out []Missing
	switch {
	case !p.Walked:
		out = append(out, Missing{SubjectConnections, "they were not counted"})
	case p.Partial:
		out = append(out, Missing{SubjectConnections, "they were counted in part"})
	case p.Age > roomAge:
		out = append(out, Missing{SubjectConnections, fmt.Sprintf("they were counted %.1f s before", p.Age.Seconds())})
	}
	switch {
	case !p.MaxConnections.Known:
		out = append(out, Missing{SubjectLimit, "it is not known"})
	case p.Uncertain:
		out = append(out, Missing{SubjectLimit, "it may be overruled by what could not be read"})
	}
	return out
}
