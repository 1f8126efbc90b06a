package diagnosis

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
)

// What could not be read is absent: each thing that a scenario knows is taken away, of both its
// looks and its evidence, one after the other and together with the connector, and a verdict is given all the same.
func TestWhateverIsAbsent(t *testing.T) {
	judged := 0
	for _, s := range scenarios() {
		e := s.evidence()
		for _, connector := range []bool{true, false} {
			if !connector {
				if e.Now == nil {
					continue
				}
				now := *e.Now
				now.Connector = nil
				e.Now = &now
			}
			withoutEach(reflect.ValueOf(&e).Elem(), 4, func(what string) {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%s without %s (a connector: %v): %v", s.name, what, connector, r)
					}
				}()
				Judge(e, reading.DefaultThresholds())
				judged++
			})
		}
	}
	if judged < 10_000 {
		t.Errorf("%d judged", judged)
	}
}

// withoutEach calls try with each pointer, slice and map below v absent, and puts it back.
func withoutEach(v reflect.Value, depth int, try func(what string)) {
	if depth == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				withoutEach(v.Field(i), depth, func(what string) { try(f.Name + "." + what) })
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if v.IsNil() {
			return
		}
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		v.SetZero()
		try(fmt.Sprint(v.Type()))
		v.Set(was)
		if v.Kind() == reflect.Pointer {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			v.Set(copied)
			withoutEach(v.Elem(), depth-1, try)
			v.Set(was)
		}
	}
}
