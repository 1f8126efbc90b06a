package api

import "github.com/tcpdiag/tcpdiag/internal/model"

// Answer is what a person reads of a verdict first.
type Answer struct {
	What string `json:"what"`          // what happens, clients first
	Why  string `json:"why"`           // the chain in one sentence, to its root
	Do   []Step `json:"do"`            // at most three, in the order in which a person takes them
	Not  string `json:"not,omitempty"` // the tempting change that does not help, and why
}

// Step is one action. A setting has the value in force and the one advised.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"` // to be copied as it is
	Setting string `json:"setting,omitempty"` // what the value is called where this server is configured
	File    string `json:"file,omitempty"`    // where the value in force was found
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	Effect  string `json:"effect,omitempty"` // what the change would do to the clients that were measured
}

func newAnswer(a *model.Answer) *Answer {
	if a.What == "" {
		return nil
	}
	out := Answer{What: a.What, Why: a.Why, Do: make([]Step, 0, len(a.Do)), Not: a.Not}
	for _, s := range a.Do {
		out.Do = append(out.Do, Step{Text: s.Text, Command: s.Command, Setting: s.Setting, File: s.File, From: s.From, To: s.To, Effect: s.Effect})
	}
	return &out
}
