package recording

import (
	"encoding/json"
	"reflect"
	"strings"
)

// What a record becomes in memory is bounded before it is decoded, since some bytes become
// many: "{}," is a listener's peer, or a map. Real records have some 25,000 values at most,
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

// Weigh is what a document takes as a value of this type, besides the value itself: a slice's
// elements and a map's entries have the size of their type, whatever is written for them.
func Weigh(document any, t reflect.Type) (bytes int) {
	if t.Kind() == reflect.Pointer {
		return int(t.Elem().Size()) + Weigh(document, t.Elem())
	}
	switch d := document.(type) {
	case string:
		return len(d)
	case json.Number:
		return len(d)
	case []any:
		return weighAll(d, t)
	case map[string]any:
		return weighFields(d, t)
	}
	return 0
}

func weighAll(list []any, t reflect.Type) (bytes int) {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return 16 * len(list) // a Point's numbers, the runs of Samples
	}
	for _, element := range list {
		bytes += int(t.Elem().Size()) + Weigh(element, t.Elem())
	}
	return bytes
}

// mapEntry is what a map takes for an entry besides its key and value.
const mapEntry = 64

func weighFields(object map[string]any, t reflect.Type) (bytes int) {
	for name, value := range object {
		bytes += len(name)
		switch t.Kind() {
		case reflect.Map:
			bytes += mapEntry + int(t.Key().Size()) + int(t.Elem().Size()) + Weigh(value, t.Elem())
		case reflect.Struct:
			if field, ok := fieldOf(t, name); ok {
				bytes += Weigh(value, field)
				continue
			}
			fallthrough
		default:
			bytes += Weigh(value, reflect.TypeFor[[]int64]())
		}
	}
	return bytes
}

// fieldOf is the type of a struct's field as encoding/json finds it: by its name in JSON,
// in whatever case.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "" {
			tag = f.Name
		}
		if f.IsExported() && tag != "-" && strings.EqualFold(tag, name) {
			return f.Type, true
		}
	}
	return nil, false
}
