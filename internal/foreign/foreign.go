// Package foreign makes documents of others safe to keep and to show: every string is
// rewritten, lists and maps are bounded.
package foreign

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What a document may hold. Those of an agent that runs well hold far less.
const (
	MaxText  = 2000 // bytes of a string
	MaxList  = 4000 // elements of a list: an incident has one a second
	MaxNames = 64   // keys of a map
)

// Clean makes every string of a document, which v points to, printable and short, and bounds its
// lists and maps.
func Clean(v any) { Rewrite(v, Printable) }

// Printable is a text without controls, cut off.
func Printable(s string) string {
	if len(s) > MaxText {
		s = strings.ToValidUTF8(s[:MaxText], "") + "…"
	}
	return model.Printable(s)
}

// Rewrite gives every string of a document, which v points to, what f makes of it. What list and
// map hold beyond their bounds goes.
func Rewrite(v any, f func(string) string) { rewrite(reflect.ValueOf(v), f) }

func rewrite(v reflect.Value, f func(string) string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			rewrite(v.Elem(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() { // time.Time has none
				rewrite(v.Field(i), f)
			}
		}
	case reflect.Slice:
		if v.Len() > MaxList { // a copy: the memory of the rest goes, too
			v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, MaxList), v.Slice(0, MaxList)))
		}
		for i := range v.Len() {
			rewrite(v.Index(i), f)
		}
	case reflect.Map:
		rewriteKeys(v, f)
	case reflect.String:
		v.SetString(f(v.String()))
	}
}

// rewriteKeys is for maps from names to numbers.
func rewriteKeys(v reflect.Value, f func(string) string) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for i, key := range keys {
		value, name := v.MapIndex(key), f(key.String())
		if i >= MaxNames || name != key.String() {
			v.SetMapIndex(key, reflect.Value{})
		}
		if i < MaxNames {
			v.SetMapIndex(reflect.ValueOf(name), value)
		}
	}
}
