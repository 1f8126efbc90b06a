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
	copied, at := 0, 0 // what lies between them stays as it is
	for at < len(in) {
		if c := in[at]; c == '\n' || c >= ' ' && c < 0x7f && c != '\\' { // that of the layout: in a string it is an escape
			at++
			continue
		}
		if in[at] == '\\' {
			n := escapeLen(in[at:])
			if in[at+1] != '"' && in[at+1] != '\\' && in[at+1] != '/' {
				out.Write(in[copied:at])
				out.WriteByte('\\')
				copied = at
			}
			at += n
			continue
		}
		r, n := utf8.DecodeRune(in[at:])
		if !unicode.IsPrint(r) {
			out.Write(in[copied:at])
			fmt.Fprintf(&out, `\\u%04x`, r)
			copied = at + n
		}
		at += n
	}
	if out.Len() == 0 {
		return in
	}
	out.Write(in[copied:])
	return out.Bytes()
}

// escapeLen is the length of the escape that begins here: \n, or \u001b.
func escapeLen(in []byte) int {
	if len(in) > 5 && in[1] == 'u' {
		return 6
	}
	return 2
}
