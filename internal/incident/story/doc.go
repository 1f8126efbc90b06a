// Package story tells what a recording says: its course, its worst moment, how the accept
// queue filled, and the answer.
package story
