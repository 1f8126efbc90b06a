package recording

// What a record becomes in memory is bounded before it is decoded, since some bytes become
// many: "{}," is a listener's peer, or a map. Real records have some 35,000 values at most,
// the first minute of samples most of them.
const (
	MaxValues = 50_000
	MaxDepth  = 64
	// MaxFrame is what a frame may take as the model's types, maxFrameSum all of a recording's.
	MaxFrame    = 4 << 20
	maxFrameSum = 128 << 20
)

// Measured reports whether a JSON text has no more values, and none deeper nested, than a
// record may have. It reads bytes and decodes nothing.
func Measured(text []byte) bool {
	values, depth, quoted := 1, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			values++
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if values > MaxValues || depth > MaxDepth {
			return false
		}
	}
	return true
}
