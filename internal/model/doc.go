// Package model holds the plain values of the domain: the stages a client's
// connection passes in front of a Tomcat, their limits, and what was lost at
// them. Every other package converts to or from these; this one imports
// nothing of the project and does no I/O.
//
// The funnel, from the client inwards:
//
//	SYN -> SYN backlog -> accept queue -> connections -> threads -> response
//
// A nil pointer means "this kernel, this user or this configuration cannot
// show it", which is never the same as zero.
package model
