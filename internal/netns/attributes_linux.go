package netns

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// attributesOf are the attributes (struct nlattr) of a message by their kinds, in their order; what is
// malformed ends them.
func attributesOf(b []byte) func(yield func(uint16, []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			n := int(binary.NativeEndian.Uint16(b))
			if n < unix.SizeofNlAttr || n > len(b) {
				return
			}
			kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
			if !yield(kind, b[unix.SizeofNlAttr:n]) {
				return
			}
			const align = unix.NLA_ALIGNTO - 1
			b = b[min((n+align)&^align, len(b)):] // the last one need not be filled up
		}
	}
}

// attribute is the value of one kind, nil without it.
func attribute(b []byte, kind uint16) []byte {
	for k, value := range attributesOf(b) {
		if k == kind {
			return value
		}
	}
	return nil
}
