package handshake

import (
	"hash/maphash"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/recall"
	"github.com/tcpdiag/tcpdiag/internal/handshake/room"
)

// key is what names an attempt among those that are open: a client that uses
// its port again has given up the earlier attempt.
type key struct {
	client     packet.Addr
	clientPort uint16
	endpoint   uint16
}

const (
	chunkSize = 128 // 8 KiB
	minChunks = 16  // 128 KiB
	// leastSlots are there whatever others need.
	leastSlots = 4 * chunkSize
	leastIndex = 256
	none       = int32(-1)

	// tick times slots is the time ahead for which deadlines can be noted.
	tick  = recall.Tick
	slots = recall.Ticks
)

// table holds the open attempts: at most limit, found by their key and by the
// time at which they are to be judged. Memory is taken with the first attempt,
// grows in steps and is given back when nothing is open.
type table struct {
	limit    int
	holdings *room.Holdings // of it
	room     room.Slots
	open     int
	chunks   [][]attempt
	free     int32 // list of unused attempts, by chain
	used     int32 // attempts ever handed out since the last release

	seed    maphash.Seed // nobody can choose addresses that collide
	buckets []int32      // index: a power of two

	wheel  []int32 // lists by deadline, nil before the first
	cursor int64   // ticks that have been judged

	hand int32 // the latest that was looked at to make room
}

func newTable(limit int, holdings *room.Holdings, share *room.Share) *table {
	t := &table{limit: limit, holdings: holdings, seed: maphash.MakeSeed()}
	t.room = room.Slots{Share: share, Step: chunkSize, Least: leastSlots}
	t.release()
	return t
}

// release forgets everything and gives the memory back.
func (t *table) release() {
	t.forget()
	t.room.Keep(0)
}

func (t *table) forget() {
	t.chunks, t.buckets, t.wheel = nil, nil, nil
	t.free, t.used, t.open = none, 0, 0
}

// compact moves the attempts together, and gives back the slots of others.
func (t *table) compact() {
	var all []attempt
	t.each(func(i int32) { all = append(all, *t.at(i)) })
	t.forget()
	for i := range all {
		a := &all[i]
		t.holdings.Add(a.endpoint, -1)
		ahead := (int64(a.slot) - t.cursor%slots + slots) % slots
		n := t.add(&key{a.client, a.clientPort, a.endpoint}, time.Duration(t.cursor+ahead)*tick)
		t.at(n).restore(a)
	}
	t.room.Keep(len(t.chunks) * chunkSize)
}

func (t *table) at(i int32) *attempt { return &t.chunks[i/chunkSize][i%chunkSize] }

func (t *table) hash(k *key) uint64 {
	var b [len(k.client) + 4]byte
	copy(b[:], k.client[:])
	b[16], b[17] = byte(k.clientPort), byte(k.clientPort>>8)
	b[18], b[19] = byte(k.endpoint), byte(k.endpoint>>8)
	return maphash.Bytes(t.seed, b[:])
}

func (t *table) bucket(k *key) *int32 { return &t.buckets[t.hash(k)&uint64(len(t.buckets)-1)] }

// find returns the latest open attempt of k, or none.
func (t *table) find(k *key) int32 {
	if len(t.buckets) == 0 {
		return none
	}
	for i := *t.bucket(k); i != none; i = t.at(i).chain {
		if a := t.at(i); a.client == k.client && a.clientPort == k.clientPort && a.endpoint == k.endpoint && !a.replaced() {
			return i
		}
	}
	return none
}

// add opens an attempt of k, which has none but replaced ones; none if the table is full.
func (t *table) add(k *key, deadline time.Duration) int32 {
	if t.open == t.limit || t.free == none && !t.room.Has(int(t.used)) {
		return none
	}
	if t.wheel == nil {
		t.wheel = noneOf(slots)
	}
	if 2*t.open >= len(t.buckets) { // most searches end at an empty bucket
		t.reindex(max(leastIndex, 2*len(t.buckets)))
	}
	i := t.take()
	a := t.at(i)
	*a = attempt{client: k.client, clientPort: k.clientPort, endpoint: k.endpoint}
	b := t.bucket(k)
	a.chain, *b = *b, i
	t.open++
	t.holdings.Add(k.endpoint, 1)
	t.link(i, deadline)
	return i
}

// mostTried bounds how many attempts are looked at for one that makes room.
const mostTried = 1024

// surplus is an attempt that has to make room for one of an endpoint, as the table is full, or none.
func (t *table) surplus(newcomer uint16) int32 {
	greediest, ok := t.holdings.Greediest(newcomer)
	for n := 0; ok && n < mostTried; n++ {
		t.hand = (t.hand + 1) % t.used
		if t.at(t.hand).endpoint == greediest {
			return t.hand
		}
	}
	return none
}

func (t *table) take() int32 {
	if i := t.free; i != none {
		t.free = t.at(i).chain
		return i
	}
	if int(t.used)/chunkSize == len(t.chunks) {
		t.chunks = append(t.chunks, make([]attempt, min(chunkSize, t.limit-int(t.used))))
	}
	t.used++
	return t.used - 1
}

// reindex changes the size of the index.
func (t *table) reindex(size int) {
	old := t.buckets
	t.buckets = noneOf(size)
	for _, head := range old {
		for i := head; i != none; {
			a := t.at(i)
			next := a.chain
			b := t.bucket(&key{a.client, a.clientPort, a.endpoint})
			a.chain, *b = *b, i
			i = next
		}
	}
}

func noneOf(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = none
	}
	return list
}

// remove closes an attempt.
func (t *table) remove(i int32) {
	a := t.at(i)
	p := t.bucket(&key{a.client, a.clientPort, a.endpoint})
	for *p != i {
		p = &t.at(*p).chain
	}
	*p = a.chain
	t.unlink(i)
	a.signs &^= asking // its place is nobody's
	a.chain, t.free = t.free, i
	t.open--
	t.holdings.Add(a.endpoint, -1)
	switch {
	case t.open == 0 && len(t.chunks) > minChunks:
		t.release()
	case 16*t.open < len(t.buckets) && len(t.buckets) > leastIndex: // a small one stays in the cache
		t.reindex(len(t.buckets) / 2)
	}
}

// move gives an attempt another deadline.
func (t *table) move(i int32, deadline time.Duration) {
	t.unlink(i)
	t.link(i, deadline)
}

func (t *table) link(i int32, deadline time.Duration) {
	n := int64((deadline + tick - 1) / tick)
	n = min(max(n, t.cursor), t.cursor+slots-1)
	a := t.at(i)
	a.slot = uint16(n % slots)
	head := &t.wheel[a.slot]
	a.previous, a.next = none, *head
	if *head != none {
		t.at(*head).previous = i
	}
	*head = i
}

func (t *table) unlink(i int32) {
	a := t.at(i)
	if a.previous == none {
		t.wheel[a.slot] = a.next
	} else {
		t.at(a.previous).next = a.next
	}
	if a.next != none {
		t.at(a.next).previous = a.previous
	}
}

// drop removes the attempts that which names.
func (t *table) drop(which func(*attempt) bool) {
	for slot := range t.wheel {
		for i := t.wheel[slot]; i != none; {
			a := t.at(i)
			next := a.next
			if which(a) {
				t.remove(i)
			}
			if t.open == 0 {
				return // the memory may have been given back
			}
			i = next
		}
	}
}

// each calls fn for every attempt. It may move that attempt, and others once they have been.
func (t *table) each(fn func(i int32)) {
	var all []int32
	for _, i := range t.wheel {
		for ; i != none; i = t.at(i).next {
			all = append(all, i)
		}
	}
	for _, i := range all {
		fn(i)
	}
}

// due removes the attempts whose deadline has come, and calls end before each, which may
// return a later deadline.
func (t *table) due(at time.Duration, end func(*attempt) (deadline time.Duration)) {
	now := int64(at / tick)
	last := min(now, t.cursor+slots-1)
	for n := t.cursor; n <= last; n++ {
		t.cursor = n // what is moved goes to a later slot
		for t.wheel != nil && t.wheel[n%slots] != none {
			i := t.wheel[n%slots]
			if deadline := end(t.at(i)); deadline > at {
				t.move(i, deadline)
			} else {
				t.remove(i)
			}
		}
	}
	t.cursor = max(t.cursor, now+1)
}

// name tells an attempt from all others, as good as always: a client's sequence numbers
// follow a clock.
func (t *Tracker) name(k *key, isn uint32) uint64 {
	return t.table.hash(k) ^ uint64(isn)*0x9e3779b97f4a7c15
}
