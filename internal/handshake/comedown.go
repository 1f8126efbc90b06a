package handshake

import "time"

// Close gives back what the Tracker has. It is not used any more.
func (t *Tracker) Close() { t.share.Leave() }

// comeDown gives room back that others need: attempts of the port that has most first. Each is counted as one for which there is none.
func (t *Tracker) comeDown(at time.Duration) {
	surplus := t.share.Surplus()
	if surplus == 0 {
		return
	}
	most := t.table.room.Without(surplus)
	for before := 0; t.table.open > most && t.table.open != before; {
		before = t.table.open
		greediest := t.endpoints.Most()
		t.table.each(func(i int32) {
			if t.table.open > most && t.table.at(i).endpoint == greediest {
				t.turnOut(at, i)
				greediest = t.endpoints.Most()
			}
		})
	}
	t.table.compact()
	t.latest, t.asking = none, t.asking[:0]
	t.table.each(func(i int32) {
		if t.table.at(i).has(asking) {
			t.asking = append(t.asking, i)
		}
	})
}

// turnOut ends an attempt for which there is no room.
func (t *Tracker) turnOut(at time.Duration, i int32) {
	a := t.table.at(i)
	k := key{a.client, a.clientPort, a.endpoint}
	if _, again := t.ended.FirstSYN(t.name(&k, a.isn)); !again && !a.has(counted) {
		t.sketch(at, t.endpoints.of(a), &k, a.isn)
	}
	t.drop(a)
	t.table.remove(i)
}

// sketch counts a client for which there is no room.
func (t *Tracker) sketch(at time.Duration, e *endpoint, k *key, isn uint32) {
	e.account.Untracked(t.shared.Untracked(at, t.name(k, isn)))
}
