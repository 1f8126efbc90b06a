package render

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// printableJSON rewrites the controls in a document's strings, which another
// process may have chosen, as text: who decodes \u009b and prints it should
// not have sent a control sequence to a terminal. encoding/json writes C0 as
// escapes, and DEL, C1 and bidirectional marks as they are.
func printableJSON(in []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(in))
	for len(in) > 0 {
		if in[0] == '\\' {
			n := escapeLen(in)
			if in[1] != '"' && in[1] != '\\' && in[1] != '/' {
				out.WriteByte('\\')
			}
			out.Write(in[:n])
			in = in[n:]
			continue
		}
		r, n := utf8.DecodeRune(in)
		if unicode.IsPrint(r) || r == '\n' { // that of the layout: in a string it is an escape
			out.Write(in[:n])
		} else {
			fmt.Fprintf(&out, `\\u%04x`, r)
		}
		in = in[n:]
	}
	return out.Bytes()
}

// escapeLen is the length of the escape that begins here: \n, or \u001b.
func escapeLen(in []byte) int {
	if len(in) > 5 && in[1] == 'u' {
		return 6
	}
	return 2
}
