// Package names has names that the test is to find.
package names

type formerState struct {
	lastLook int
	overlook int
}

const mostLooks = 3

// Vanished has a word in its name, and so has what is local to it.
func (f formerState) Vanished() bool {
	look := f.lastLook
	return look > mostLooks
}
