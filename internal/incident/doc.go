// Package incident keeps what was seen of each listener: the last minutes in
// memory, second by second, and a recording of every time that one of them was
// in trouble, written as it happens, so that the evidence outlives the agent and
// the server. From a recording the verdicts can be judged again.
package incident
