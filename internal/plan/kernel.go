package plan

import (
	"math"
	"time"
)

// jiffy is the kernel's tick with CONFIG_HZ=250 (Debian, Ubuntu up to 24.04).
const jiffy = time.Second / 250

// jiffies converts whole ticks.
func jiffies(n int64) time.Duration { return time.Duration(n) * jiffy }

const (
	second = int64(time.Second / jiffy) // in jiffies

	// maxSynRetries is tcp_syn_retries (6) + tcp_syn_linear_timeouts (4), as
	// tcp_write_timeout adds them up.
	maxSynRetries = 10
	// synAckRetries is tcp_synack_retries: 1, 3, 7, 15, 31 s, given up at 63 s.
	synAckRetries = 5
	// orphanRetries is what tcp_orphan_retries grants a socket that its
	// program has closed, and the tail loss probe in front of them.
	orphanRetries = 8 + 1
)

// dataRetries are the waits, in jiffies, between the repetitions of a request
// that the server does not acknowledge: tcp_retries2 = 15.
type dataRetries [15]int64

// newDataRetries follows tcp_send_loss_probe (the first, after one timeout)
// and tcp_retransmit_timer (doubling up to TCP_RTO_MAX). The timeout is the
// round trip + TCP_RTO_MIN and a tick, as measured on the handshake.
func newDataRetries(roundTrip time.Duration) dataRetries {
	var d dataRetries
	rto := second/5 + 1 + int64(roundTrip/jiffy)
	d[0], d[1] = rto, rto
	for i := 2; i < len(d); i++ {
		d[i] = min(2*d[i-1], 120*second)
	}
	return d
}

// waits returns the times, in jiffies, between a client's SYNs; after the last
// one its connect() fails with ETIMEDOUT. In tcp_retransmit_timer the timeout
// of 1 s doubles only after tcp_syn_linear_timeouts repetitions.
func (r SynRetries) waits() []int64 {
	linear, retries := 4, maxSynRetries
	if r == SynRetriesExponential {
		linear, retries = 0, 6
	}
	out := make([]int64, retries+1)
	for i := range out {
		out[i] = second << max(0, i-linear)
	}
	return out
}

// fireAt is when a kernel timer set at a moment for some jiffies fires. The
// timer wheel rounds up to the granularity of the level the timer falls in
// (calc_index in kernel/time/timer.c): 4 ms, 32 ms from 63 jiffies on, 256 ms
// from 504, 2 s from 4032. So clients that came within one such step repeat
// their SYNs in the same softirq, as one batch.
func fireAt(now time.Duration, wait int64) time.Duration {
	shift := 0
	for start := int64(63); wait >= start && shift < 24; start <<= 3 {
		shift += 3
	}
	expires := int64(now/jiffy) + wait
	return jiffies((expires>>shift + 1) << shift)
}

// synQueue is the listener's half-open connections (request sockets).
type synQueue struct {
	len   int
	young int // of those, the ones whose SYN+ACK was sent only once
}

// full is inet_csk_reqsk_queue_is_full, which compares with ">" since 2025 and with
// ">=" in a small queue.
func (q *synQueue) full(backlog int, small bool) bool {
	return q.len > backlog || small && q.len == backlog
}

// crowded is the check of tcp_conn_request without syncookies: the last
// quarter of tcp_max_syn_backlog is for peers that are known.
func (q *synQueue) crowded(maxSynBacklog int) bool {
	return maxSynBacklog-q.len < maxSynBacklog>>2
}

// retries is how often a SYN+ACK is repeated as the queue stands: old
// half-open connections make room for young ones (reqsk_timer_handler).
func (q *synQueue) retries(backlog int) int {
	n := synAckRetries
	if q.len<<1 <= max(8, backlog) {
		return n
	}
	for young := q.young << 1; n > 2 && q.len >= young; young <<= 1 {
		n--
	}
	return n
}

// noLimit is a maxConnections or maxThreads that is never reached.
const noLimit = math.MaxInt
