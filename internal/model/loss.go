package model

// Packet is what the kernel dropped.
type Packet string

// The packets of a handshake that a full queue drops.
const (
	PacketSYN     Packet = "syn"     // the client sees a delay, then a connect timeout
	PacketACK     Packet = "ack"     // the client believes it is connected
	PacketUnknown Packet = "unknown" // the counters do not say which
)

// DropKey is what dropped packets are counted by.
type DropKey struct {
	Cause  Cause
	Packet Packet
}

// Drops are packets (retransmissions included), never clients.
type Drops struct {
	DropKey
	Packets   uint64
	Evidence  Evidence // of the latest of them
	Estimated bool     // several listeners dropped in one tick: the split is by their sockets' counters
}

// Losses are what clients lost at one listener during an interval. Each figure
// counts something else; they are never added up.
type Losses struct {
	DroppedPackets uint64 // sum of By, and Unattributed
	By             []Drops
	// Burst is the most of them within a second, or from one scan to the next
	// where these are further apart; 0 where that was not followed. A client
	// repeats a SYN after a second at the earliest.
	Burst uint64
	// Unattributed are packets that the namespace dropped and no socket's own
	// counter accounts for, when they can only be this listener's: no other is
	// watched, and no other's counter moved. Otherwise they are reported with the
	// namespace alone.
	Unattributed uint64
	// AbandonedRequests: the client closed while its request was waiting or in
	// service. An estimate: seen at scans, which miss some, and counted up to the increase
	// of the namespace's EstabResets, which another port's resets move, too.
	AbandonedRequests uint64
	// QueueResets: connections that stood in the accept queue when the listener closed.
	QueueResets uint64
	// SocketDrops are packets that the listener's own socket dropped (SK_MEMINFO_DROPS) beyond those of DroppedPackets: a filter of
	// the socket or its cgroup counts nowhere else (tcp_filter in tcp_v4_rcv), but resets and what is out of place count there, too.
	SocketDrops uint64
	// WorstCase is what clients may have seen: connect_timeout, read_timeout, reset, refused.
	WorstCase []string
	// Clients are those behind the packets; nil where their handshakes are not
	// followed.
	Clients *Clients
}

// Totals are a listening address's running totals since the agent started.
// They survive the listener's restart.
type Totals struct {
	Dropped map[DropKey]uint64
	// Pending are dropped packets whose cause is still being read, at most for a
	// second: they are not in Dropped, as a counter cannot take its cause back.
	Pending           uint64
	AbandonedRequests uint64
	QueueResets       uint64
	FullSeconds       float64
	Fill              FillHistogram
	Clients           *ClientTotals // nil where their handshakes are not followed
}

// RetainedTotals are the totals of an address that nothing listens on any more.
type RetainedTotals struct {
	ID     ListenerID
	Totals Totals
}
