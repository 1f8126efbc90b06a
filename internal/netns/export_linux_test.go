package netns

import "os"

// DoNoReturn is Do with home in place of the way back.
func DoNoReturn(target, home *os.File, fn func() error) error {
	v := visit{target: target, original: home, fn: fn}
	onThread(v.cross)
	return v.outcome()
}
