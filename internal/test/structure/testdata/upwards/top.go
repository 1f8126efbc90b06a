// Package upwards has three files that call one another in a circle.
package upwards

import "example.com/missing"

type task struct {
	first, second int
	missing.Embedded
}

// Run calls down.
func (t *task) Run() { t.step() }

func name() string { return "top" }

func below() { last() }
