package incident

import (
	"encoding/json"
	"reflect"
	"strings"
)

// What a record becomes in memory is bounded before it is decoded, since some bytes become
// many: "{}," is a listener's peer, or a map. Real records have some 25,000 values at most,
// the first minute of samples most of them.
const (
	maxValues = 50_000
	maxDepth  = 64
	// maxFrame is what a frame may take as the model's types, maxFrameSum all of a recording's.
	maxFrame    = 4 << 20
	maxFrameSum = 128 << 20
)

// measured reports whether a JSON text has no more values, and none deeper nested, than a
// record may have. It reads bytes and decodes nothing.
func measured(text []byte) bool {
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
		if values > maxValues || depth > maxDepth {
			return false
		}
	}
	return true
}

// weigh is what a document takes as a value of this type, besides the value itself: a slice's
// elements and a map's entries have the size of their type, whatever is written for them.
func weigh(document any, t reflect.Type) (bytes int) {
	if t.Kind() == reflect.Pointer {
		return int(t.Elem().Size()) + weigh(document, t.Elem())
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
		bytes += int(t.Elem().Size()) + weigh(element, t.Elem())
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
			bytes += mapEntry + int(t.Key().Size()) + int(t.Elem().Size()) + weigh(value, t.Elem())
		case reflect.Struct:
			if field, ok := fieldOf(t, name); ok {
				bytes += weigh(value, field)
				continue
			}
			fallthrough
		default:
			bytes += weigh(value, reflect.TypeFor[[]int64]())
		}
	}
	return bytes
}

// fieldOf is the type of a struct's field as encoding/json finds it: by its name in JSON,
// in whatever case.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
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
