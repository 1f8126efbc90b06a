package recording

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"time"
)

// encode is a value as it is written.
func encode(v any) (json.RawMessage, error) {
	return json.Marshal(moment{}.document(reflect.ValueOf(v)))
}

// moment is that of a frame. The times in it are written on the wall clock of this one moment, and as far
// apart as they were on the monotonic clock, which its verdict was judged by: a clock that is set does not
// change what is judged again. Where it is zero they are written as they are.
type moment time.Time

func (m moment) time(t time.Time) time.Time {
	at := time.Time(m)
	if t.IsZero() || at.IsZero() {
		return t
	}
	return at.Round(0).UTC().Add(t.Sub(at))
}

// document is a value as JSON has it: a map, of a struct by its layout and without zeros, a list, or what
// JSON writes by itself; nil for null.
func (m moment) document(v reflect.Value) any {
	t := v.Type()
	if l := layouts()[t]; l != nil {
		return m.fields(v, l)
	}
	switch k := t.Kind(); {
	case (k == reflect.Pointer || k == reflect.Slice || k == reflect.Map) && v.IsNil():
		return nil
	case k == reflect.Pointer:
		return m.document(v.Elem())
	case t == reflect.TypeFor[time.Time]():
		return m.time(v.Interface().(time.Time))
	case t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
	case k == reflect.Slice || k == reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = m.document(v.Index(i))
		}
		return out
	case k == reflect.Map:
		out := make(map[string]any, v.Len())
		for key, value := range v.Seq2() {
			out[key.String()] = m.document(value)
		}
		return out
	}
	return v.Interface()
}

func (m moment) fields(v reflect.Value, l *layout) map[string]any {
	out := make(map[string]any)
	for _, f := range l.fields {
		if value := v.FieldByIndex(f.index); !value.IsZero() {
			out[f.name] = m.document(value)
		}
	}
	return out
}

// parse keeps numbers as they are written.
func parse(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// decode reads what encode has written into *v. It is bounded by what it would take in memory.
func decode(text json.RawMessage, v any) error {
	document, err := parse(text)
	if err != nil {
		return err
	}
	_, err = fill(document, v)
	return err
}

var (
	errKind = errors.New("another kind of value")
	errRoom = errors.New("more than a record can be")
)

// filling makes a value of a document, in as much memory as is left.
type filling struct{ left int }

// fill makes *v of a document, and says what that takes. Names that no layout has are removed
// from the document.
func fill(document, v any) (weight int, err error) {
	f := &filling{MaxFrame}
	err = f.value(document, reflect.ValueOf(v).Elem())
	return MaxFrame - f.left, err
}

func (f *filling) take(bytes int) error {
	if f.left -= bytes; f.left < 0 {
		return errRoom
	}
	return nil
}

func (f *filling) value(document any, v reflect.Value) error {
	if document == nil {
		return nil
	}
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		if err := f.take(int(t.Elem().Size())); err != nil {
			return err
		}
		v.Set(reflect.New(t.Elem()))
		return f.value(document, v.Elem())
	}
	if l := layouts()[t]; l != nil {
		return f.fields(document, v, l)
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return f.text(document, v)
	}
	switch d := document.(type) {
	case []any:
		return f.list(d, v)
	case map[string]any:
		return f.entries(d, v)
	case string:
		if t.Kind() != reflect.String {
			return errKind
		}
		v.SetString(d)
		return f.take(len(d))
	case bool:
		if t.Kind() != reflect.Bool {
			return errKind
		}
		v.SetBool(d)
		return nil
	case json.Number:
		if err := f.take(len(d)); err != nil {
			return err
		}
		return number(d, v)
	}
	return errKind
}

// text has a value read JSON by itself: a time, an address, a Point's numbers, the runs of Samples, which
// become eight times as large at most.
func (f *filling) text(document any, v reflect.Value) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if err := f.take(8 * len(text)); err != nil {
		return err
	}
	return json.Unmarshal(text, v.Addr().Interface())
}

func (f *filling) fields(document any, v reflect.Value, l *layout) error {
	object, ok := document.(map[string]any)
	if !ok {
		return errKind
	}
	for name, value := range object {
		index, ok := l.byName[name]
		if !ok {
			delete(object, name)
			continue
		}
		if err := f.value(value, v.FieldByIndex(index)); err != nil {
			return err
		}
	}
	return nil
}

// list fills a slice; of an array as much as it has.
func (f *filling) list(list []any, v reflect.Value) error {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return errKind
	}
	if err := f.take(len(list) * max(16, int(v.Type().Elem().Size()))); err != nil { // 16 in the document
		return err
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	}
	for i, element := range list[:min(len(list), v.Len())] {
		if err := f.value(element, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// mapEntry is what a map takes for an entry besides its key and value.
const mapEntry = 64

func (f *filling) entries(object map[string]any, v reflect.Value) error {
	t := v.Type()
	if t.Kind() != reflect.Map {
		return errKind
	}
	out := reflect.MakeMapWithSize(t, len(object))
	for key, value := range object {
		if err := f.take(mapEntry + len(key) + int(t.Key().Size()) + int(t.Elem().Size())); err != nil {
			return err
		}
		entry := reflect.New(t.Elem()).Elem()
		if err := f.value(value, entry); err != nil {
			return err
		}
		out.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), entry)
	}
	v.Set(out)
	return nil
}

func number(n json.Number, v reflect.Value) error {
	switch {
	case v.CanInt():
		i, err := n.Int64()
		if err != nil || v.OverflowInt(i) {
			return errKind
		}
		v.SetInt(i)
	case v.CanUint():
		u, err := strconv.ParseUint(string(n), 10, 64)
		if err != nil || v.OverflowUint(u) {
			return errKind
		}
		v.SetUint(u)
	case v.CanFloat():
		x, err := n.Float64()
		if err != nil {
			return errKind
		}
		v.SetFloat(x)
	default:
		return errKind
	}
	return nil
}
