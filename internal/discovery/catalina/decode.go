package catalina

import (
	"bytes"
	"encoding/binary"
	"errors"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// errEncoding is an XML document in an encoding that is not read.
var errEncoding = errors.New("encoding is not read")

// decode turns a document into UTF-8 by its byte order mark or its own
// declaration (XML 1.0 appendix F).
func decode(data []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return data[3:], nil
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return decodeUTF16(data[2:], binary.BigEndian), nil
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return decodeUTF16(data[2:], binary.LittleEndian), nil
	case bytes.HasPrefix(data, []byte("\x00<\x00?")):
		return decodeUTF16(data, binary.BigEndian), nil
	case bytes.HasPrefix(data, []byte("<\x00?\x00")):
		return decodeUTF16(data, binary.LittleEndian), nil
	}
	switch declaredEncoding(data) {
	case "", "utf-8", "utf8":
		return data, nil
	case "iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252", "cp1252", "iso-8859-15":
		return decodeLatin1(data), nil
	default:
		return nil, errEncoding
	}
}

// declaredEncoding is the encoding of <?xml … encoding="…"?>, in lower case.
func declaredEncoding(data []byte) string {
	head := data[:min(len(data), 256)]
	found := regexp.MustCompile(`^<\?xml[^>]*\sencoding\s*=\s*["']([^"']+)["']`).FindSubmatch(head)
	if found == nil {
		return ""
	}
	return strings.ToLower(string(found[1]))
}

// decodeLatin1 is enough for the one-byte encodings: they differ in characters
// that no limit, port or name of an executor is written with.
func decodeLatin1(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/8)
	for _, b := range data {
		out = utf8.AppendRune(out, rune(b))
	}
	return out
}

func decodeUTF16(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}
