package model

const (
	// connectionsSlack is the share of maxConnections that may be missing from the
	// kernel's count of a server at its limit: a walk of the socket table is not one
	// instant, and Tomcat frees a slot only after the socket is closed. One connection
	// may be missing from slackFrom on.
	connectionsSlack = .02
	slackFrom        = 8
	// idleMajority is the share of connections that must be idle to be the cause.
	idleMajority = .5
	// filesFull is the share of the file limit that counts as reached: Tomcat frees
	// and takes descriptors while accept() fails with EMFILE.
	filesFull = .98
)

// ConnectionsReached is the number of connections from which a server counts as one
// that holds its maxConnections.
func ConnectionsReached(most int) int {
	missing := int(float64(most) * connectionsSlack)
	if most >= slackFrom {
		missing = max(missing, 1)
	}
	return most - missing
}

// MostlyIdle reports whether most of the connections that are held are idle.
func MostlyIdle(idle, held int) bool { return float64(idle) > idleMajority*float64(held) }

// MostlyRecent reports whether most idle connections were used within the last two
// seconds: on average a client asks again that soon.
func (c *Connections) MostlyRecent() bool { return 2*c.Recent > c.Phases[Idle] }

// MostlyMaybeBusy reports whether most idle connections may be in service.
func (c *Connections) MostlyMaybeBusy() bool { return 2*c.MaybeBusy > c.Phases[Idle] }

// Unused are the idle connections; 0 where most of them may be in service.
func (c *Connections) Unused() int {
	if c.MostlyMaybeBusy() {
		return 0
	}
	return c.Phases[Idle]
}

// FilesReached reports whether a process has nearly as many files open as it may:
// accept() may find no descriptor.
func FilesReached(used, most int) bool { return float64(used) >= filesFull*float64(most) }
