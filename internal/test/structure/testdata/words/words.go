// Package words tells of comments that are read.
package words

// So many is found, and what is in a string is so only where it is unsaid.
const text = "so many, seldom, as far as"

var _ = text // told apart, at the end of a line
