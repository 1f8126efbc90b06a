package model

// AcceptorState is what the thread that accepts connections was seen to do, in two
// readings where that takes two.
type AcceptorState string

// The states; "" is not read, or not clear.
const (
	AcceptorAccepts AcceptorState = "accepts"  // in accept(2), or running
	AcceptorAtLimit AcceptorState = "at_limit" // at the connection latch
	AcceptorPauses  AcceptorState = "pauses"   // asleep for a set time, with open files below their limit
	AcceptorMissing AcceptorState = "missing"  // there is no such thread
)
