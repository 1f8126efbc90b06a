package catalina

import (
	"bytes"
	"slices"
)

// lines are the offsets at which a text's lines begin.
type lines []int

func lineStarts(data []byte) lines {
	starts := make(lines, 1, bytes.Count(data, []byte("\n"))+1)
	for i, b := range data {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// at is the number of the line that holds the byte at offset; the first is 1.
func (l lines) at(offset int) int {
	i, found := slices.BinarySearch(l, offset)
	if found {
		return i + 1
	}
	return i
}
