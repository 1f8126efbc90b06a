package losses

// kinds divides the dropped packets of one listener by kind.
type kinds struct{ syn, ack, unknown uint64 }

// kindsOf splits the overflows of a listener that alone dropped in a tick,
// from how far its socket's counter moved beyond ListenOverflows:
//
//   - a SYN at a full accept queue: tcp_conn_request → tcp_listendrop, which
//     adds 1 to ListenDrops and 1 to sk_drops;
//   - a final ACK (or the data behind it) at a full accept queue:
//     tcp_v4_syn_recv_sock → tcp_listendrop, 1 and 1; tcp_check_req then
//     returns no socket, tcp_v4_rcv takes discard_and_relse, and sk_drops_add
//     adds another 1. The same with tcp_abort_on_overflow=1;
//   - an ACK with a valid SYN cookie at a full accept queue: cookie_v4_check
//     → tcp_v4_syn_recv_sock → tcp_listendrop, 1 and 1, for the caller frees
//     the packet without counting it: not distinguishable from a SYN.
//
// So final ACKs are the socket's increments less the drops, at most all of
// them. It is an upper bound: a duplicate SYN or an RST to a half-open
// connection, and a bare ACK under TCP_DEFER_ACCEPT, add 1 to sk_drops alone.
// So does a drop between the two readings, which are therefore repeated until
// there was none (else they are Torn, and nothing is called an ACK).
func kindsOf(packets, increments, cookies uint64) kinds {
	ack := min(increments-min(increments, packets), packets)
	rest := packets - ack
	unknown := min(cookies, rest)
	return kinds{syn: rest - unknown, ack: ack, unknown: unknown}
}
