package rig

import (
	"errors"
	"fmt"
	"time"
)

// Overload is a case as data: a server, its clients, what is so when it has them, and
// what tcpdiag is to say of it then.
type Overload struct {
	Name    string
	Server  Start
	Address string        // that answers when the server is there; "" is 127.0.0.1 and Port
	Front   []func(*Case) // what stands before it, started when it answers
	Clients []Clients     // one crowd after the other
	Full    Full
	Note    string        // of the truth, besides what the MBeans say
	Settle  time.Duration // before tcpdiag is asked
	Agent   bool          // an agent is asked as well
	Ask     []string      // flags of the snapshot
	Lasting bool          // the load is still there afterwards, or the case has failed
	Says    Says
	Then    func(*Case, *Server) // what else is to be seen
}

// Full is what the MBeans and the clients say when the load has come.
type Full struct {
	Any         bool // however many threads are busy
	Busy        int  // threads, exactly
	OrMore      bool // or more of them
	Connections int  // at least
	Exactly     bool // or exactly
	Answered    int  // clients of the first crowd that have had something, at least
	Connected   int  // clients of all crowds, at least
}

// Says is what is expected: one of the verdicts, all of the names, none of the silent.
type Says struct {
	Verdict             []string
	Names, Silent       []string
	Unknown             bool // what is right to say here is that it is not known
	UnknownWithoutCause bool // it is where no cause is named
}

// Run is the case's life.
func (o Overload) Run(c *Case) {
	c.Helper()
	s := o.Server(c)
	if o.Address == "" {
		o.Address = fmt.Sprintf("127.0.0.1:%d", Port)
	}
	c.Answers(o.Address)
	for _, front := range o.Front {
		front(c)
	}
	var crowds []*Crowd
	for _, clients := range o.Clients {
		crowds = append(crowds, c.Hold(clients))
	}
	c.Until("the load has come", func() bool { return o.Full.met(s.Says(Port), crowds) })
	c.Wait(o.Settle)
	c.Row.Truth = s.Says(Port).String() + o.Note
	o.asked(c)
	if o.Lasting && !o.Full.met(s.Says(Port), crowds) {
		c.Must(errors.New("the load ended by itself"))
	}
	if o.Then != nil {
		o.Then(c, s)
	}
}

func (o Overload) asked(c *Case) {
	c.Helper()
	var said *Said
	switch {
	case o.Agent:
		said = c.Both(Port, o.Says.Verdict...)
	case len(o.Says.Verdict) > 0:
		said = c.Ask(Port, o.Ask...).Verdict(o.Says.Verdict...)
	default:
		said = c.Ask(Port, o.Ask...)
	}
	said.Names(o.Says.Names...).Silent(o.Says.Silent...)
	c.Row.Unknown = o.Says.Unknown || o.Says.UnknownWithoutCause && said.Listener != nil && said.Cause() == ""
}

func (f Full) met(says ConnectorTruth, crowds []*Crowd) bool {
	connected := 0
	for _, w := range crowds {
		connected += int(w.Connected.Load())
	}
	busy := f.Any || says.Busy == f.Busy || f.OrMore && says.Busy > f.Busy
	held := says.Connections == f.Connections || !f.Exactly && says.Connections > f.Connections
	return busy && held && connected >= f.Connected && (f.Answered == 0 || int(crowds[0].Answered.Load()) >= f.Answered)
}
