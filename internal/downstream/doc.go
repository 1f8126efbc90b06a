// Package downstream counts the outgoing connections of a process by their peer,
// and distinguishes those on which a request is in flight from those that are idle. It is
// pure: sockets of a walk go in, values come out.
//
// They are distinguished by tcp_info's ages, which end in whole jiffies. A request
// is in flight when data was sent later than any was received. A response whose
// first bytes have come cannot be distinguished from one that is finished: such a
// connection counts as idle, so that what streams long responses is counted too
// low. Within one jiffy the two ages tie; see FlightOf.
package downstream
