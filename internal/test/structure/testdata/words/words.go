// Package words tells of comments that are read.
package words

// So many is found, and what is in a string is not.
const text = "so many, seldom"

var _ = text // told apart, at the end of a line
