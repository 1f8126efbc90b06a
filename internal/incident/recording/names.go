package recording

import (
	"reflect"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// renamed are the names that fields of the model had in recordings of versions before, with those
// of today: a frame is written with the names of the model's types, and the types may change.
func renamed() map[reflect.Type]map[string]string {
	return map[reflect.Type]map[string]string{
		reflect.TypeFor[model.Connections](): {"Sampled": "Subset"},
	}
}

// modernize gives the fields of a frame, or of a change of one, their names of today.
func modernize(document any, t reflect.Type, renamed map[reflect.Type]map[string]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch d := document.(type) {
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for _, element := range d {
				modernize(element, t.Elem(), renamed)
			}
		}
	case map[string]any:
		for was, name := range renamed[t] {
			if value, ok := d[was]; ok {
				delete(d, was)
				d[name] = value
			}
		}
		for name, value := range d {
			if t.Kind() == reflect.Map {
				modernize(value, t.Elem(), renamed)
			} else if field, ok := fieldOf(t, name); ok {
				modernize(value, field, renamed)
			}
		}
	}
}
