package memory

import (
	"encoding/binary"
	"errors"
)

// Why nothing was read, beside hangs.ErrOthers.
var (
	// ErrNoAnswer is memory that did not answer in time.
	ErrNoAnswer = errors.New("this memory did not answer")
	// ErrWaits is a reading whose turn comes later.
	ErrWaits = errors.New("this memory, or that of other processes of its user or container, did not answer; it is asked again later")
)

const (
	// most is how much one request may be answered with (addresses times size), and
	// mostAddresses how many addresses it may have: a message is less than the socket's buffer.
	most          = 64 << 10
	mostAddresses = 2048
)

// nothing stands for the length of what could not be read.
const nothing = ^uint32(0)

// split takes an answer apart: the length of each part, and the part.
func split(answer []byte, parts, size int) ([][]byte, error) {
	out := make([][]byte, parts)
	for i := range out {
		if len(answer) < 4 {
			return nil, ErrNoAnswer
		}
		n := binary.NativeEndian.Uint32(answer)
		answer = answer[4:]
		if n == nothing {
			continue
		}
		if int64(n) > int64(min(size, len(answer))) {
			return nil, ErrNoAnswer
		}
		out[i], answer = answer[:n:n], answer[n:]
	}
	return out, nil
}
