// Package cputime measures what a piece of work costs in CPU time.
package cputime

import "time"

// Rest is how long what cost so much CPU time rests before it is repeated: every at
// least, and until it takes no more than a part of a core.
func Rest(cost, every time.Duration, part float64) time.Duration {
	return max(every, time.Duration(float64(cost)/part))
}
