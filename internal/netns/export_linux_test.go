package netns

import "os"

// NewUnanswered is a Filter whose rules are being read, and never all of them.
func NewUnanswered() *Filter { return &Filter{reading: make(chan struct{})} }

// DoNoReturn is Do with home in place of the way back.
func DoNoReturn(target, home *os.File, fn func() error) error {
	v := visit{target: target, original: home, fn: fn}
	onThread(v.cross)
	return v.outcome()
}
