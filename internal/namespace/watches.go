package namespace

import "time"

// watches are all listeners that are watched in a namespace.
type watches struct {
	list    []watch
	byInode map[uint32]memberIndex // member by socket inode, for the LISTEN dump
}

// memberIndex finds a member: list[watch].members[member].
type memberIndex struct{ watch, member int }

// member is who has this socket, nil when it is not watched.
func (ws *watches) member(inode uint32) *member {
	p, ok := ws.byInode[inode]
	if !ok {
		return nil
	}
	return &ws.list[p.watch].members[p.member]
}

func (ws *watches) resetSeen() {
	for i := range ws.list {
		ws.list[i].resetSeen()
	}
}

// misses reports whether a dump does not have a listener that is not known to be
// closed.
func (ws *watches) misses() bool {
	for i := range ws.list {
		if ws.list[i].misses() {
			return true
		}
	}
	return false
}

// miss notes that the listeners which the dump does not have are closed.
func (ws *watches) miss(now time.Time, migrates bool) (closed bool) {
	for i := range ws.list {
		closed = ws.list[i].miss(now, migrates) || closed
	}
	return closed
}

// queued reports whether a client waits in any of the accept queues.
func (ws *watches) queued() bool {
	for i := range ws.list {
		if ws.list[i].queue.Length > 0 {
			return true
		}
	}
	return false
}

// exact says that one request per listener that was active since will do: they are few, and none
// shares its address, for which the kernel would pick a member by hash.
func (ws *watches) exact(listeners int, since time.Time) bool {
	active := 0
	for i := range ws.list {
		switch w := &ws.list[i]; {
		case w.active.Before(since):
		case !w.alone():
			return false
		default:
			active++
		}
	}
	return active <= exactLimit+listeners/dumpPart
}

// wake has all, or those that are new, be asked for at each sample for a while.
func (ws *watches) wake(now time.Time, all bool) {
	for i := range ws.list {
		if w := &ws.list[i]; all || w.active.IsZero() {
			w.active = now
		}
	}
}

// anyActive reports whether one was active since.
func (ws *watches) anyActive(since time.Time) bool {
	for i := range ws.list {
		if !ws.list[i].active.Before(since) {
			return true
		}
	}
	return false
}

// replace puts the watches of a new watchlist in the memberIndex of the previous ones. A
// listener that closed in between is settled first; one that closed after the
// watchlist's dump does not close a second time. stands reports whether a socket that
// is not watched any more still listens: it has reset nobody. It reports whether a
// socket was not watched before.
func (ws *watches) replace(now time.Time, next []watch, stands func(inode uint32) bool, migrates bool) (added bool) {
	known := 0
	inodes := make(map[uint32]memberIndex)
	for w := range next {
		for m := range next[w].members {
			inodes[next[w].members[m].inode] = memberIndex{w, m}
		}
	}
	for i := range ws.list {
		old := &ws.list[i]
		for m := range old.members {
			p, listed := inodes[old.members[m].inode]
			old.members[m].seen = listed || stands(old.members[m].inode)
			if listed {
				known++
				next[p.watch].inherit(old)
				next[p.watch].members[p.member].inherit(&old.members[m])
			}
		}
		old.miss(now, migrates)
	}
	ws.list, ws.byInode = next, inodes
	return known < len(inodes)
}
