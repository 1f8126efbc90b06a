// Package downwards can be read from the top.
package downwards

// Run calls down, and itself.
func Run(n int) {
	if n > 0 {
		Run(n - 1)
	}
	step(n)
}
