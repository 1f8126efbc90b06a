package sockdiag

import (
	"encoding/binary"
	"time"
)

// Sizes of struct tcp_info at which a group of fields is whole. The struct
// only grows at its end.
const (
	tcpInfoTimes    = 104 // up to tcpi_total_retrans (Linux 2.6)
	tcpInfoBytes    = 144 // up to tcpi_segs_in (4.2)
	tcpInfoDataSegs = 160 // up to tcpi_data_segs_out (4.6)
	tcpInfoSent     = 216 // up to tcpi_bytes_retrans (4.19)
)

// TCPInfo is the part of struct tcp_info (linux/tcp.h) that says where a
// request stands. The ages have the resolution of a jiffy (1 to 10 ms).
type TCPInfo struct {
	// Size is how many bytes of the struct this kernel filled; the Has methods
	// say from it which fields are real.
	Size int

	// LastDataSent is the age of the last data segment sent. It starts when
	// the handshake completes, so on a queued connection it is the time in the
	// accept queue.
	LastDataSent time.Duration // tcpi_last_data_sent
	LastDataRecv time.Duration // tcpi_last_data_recv
	LastAckRecv  time.Duration // tcpi_last_ack_recv

	Retransmits uint8         // tcpi_retransmits: unanswered retransmissions of the oldest segment
	RTO         time.Duration // tcpi_rto: how long an answer to it is awaited
	RTT         uint32        // tcpi_rtt, microseconds

	BytesAcked    uint64 // tcpi_bytes_acked: sent and acknowledged; HasBytes
	BytesReceived uint64 // tcpi_bytes_received: in order; HasBytes
	SegsOut       uint32 // tcpi_segs_out; HasBytes
	SegsIn        uint32 // tcpi_segs_in; HasBytes

	NotSent     uint32 // tcpi_notsent_bytes: in the send queue, not yet sent; HasDataSegs
	DataSegsIn  uint32 // tcpi_data_segs_in: segments with payload; HasDataSegs
	DataSegsOut uint32 // tcpi_data_segs_out; HasDataSegs

	BytesSent    uint64 // tcpi_bytes_sent, retransmissions included; HasBytesSent
	BytesRetrans uint64 // tcpi_bytes_retrans; HasBytesSent
}

// HasBytes reports whether BytesAcked, BytesReceived, SegsIn, SegsOut are real.
func (i *TCPInfo) HasBytes() bool { return i.Size >= tcpInfoBytes }

// HasDataSegs reports whether DataSegsIn, DataSegsOut, NotSent are real.
func (i *TCPInfo) HasDataSegs() bool { return i.Size >= tcpInfoDataSegs }

// HasBytesSent reports whether BytesSent and BytesRetrans are real (4.19).
func (i *TCPInfo) HasBytesSent() bool { return i.Size >= tcpInfoSent }

// decode answers false, and leaves i alone, if not even the ages are there.
func (i *TCPInfo) decode(b []byte) bool {
	if len(b) < tcpInfoTimes {
		return false
	}
	i.Size = len(b)
	i.Retransmits = b[2]
	i.RTO = time.Duration(binary.NativeEndian.Uint32(b[8:])) * time.Microsecond
	i.LastDataSent = millis(b[44:])
	i.LastDataRecv = millis(b[52:])
	i.LastAckRecv = millis(b[56:])
	i.RTT = binary.NativeEndian.Uint32(b[68:])
	if i.HasBytes() {
		i.BytesAcked = binary.NativeEndian.Uint64(b[120:])
		i.BytesReceived = binary.NativeEndian.Uint64(b[128:])
		i.SegsOut = binary.NativeEndian.Uint32(b[136:])
		i.SegsIn = binary.NativeEndian.Uint32(b[140:])
	}
	if i.HasDataSegs() {
		i.NotSent = binary.NativeEndian.Uint32(b[144:])
		i.DataSegsIn = binary.NativeEndian.Uint32(b[152:])
		i.DataSegsOut = binary.NativeEndian.Uint32(b[156:])
	}
	if i.HasBytesSent() {
		i.BytesSent = binary.NativeEndian.Uint64(b[200:])
		i.BytesRetrans = binary.NativeEndian.Uint64(b[208:])
	}
	return true
}

func millis(b []byte) time.Duration {
	return time.Duration(binary.NativeEndian.Uint32(b)) * time.Millisecond
}
