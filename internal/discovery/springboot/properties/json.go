package properties

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
)

// FlattenJSON puts the leaves of a JSON object. Numbers keep their spelling.
func FlattenJSON(text string, d *Document) error {
	if len(text) > maxJSON {
		return bounded.ErrTooLarge
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return malformedJSON(err)
	}
	flattenJSONMap("", root, d)
	return d.Quota.Err()
}

func flattenJSONMap(prefix string, m map[string]any, d *Document) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(k) > maxKey {
			d.Quota.Over = true
			return
		}
		flattenJSONValue(prefix+k, m[k], d)
	}
}

func flattenJSONValue(name string, v any, d *Document) {
	if len(name) > maxKey {
		d.Quota.Over = true
	}
	if d.Quota.Over {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		flattenJSONMap(name+".", v, d)
	case []any:
		if len(v) > maxElements {
			d.Quota.Over = true
			return
		}
		for i, e := range v {
			flattenJSONValue(indexed(name, i), e, d)
		}
	case nil: // a null is no value: the next source is asked
	case json.Number:
		d.Put(name, v.String())
		if strings.ContainsAny(v.String(), ".eE") {
			d.Put(name, javaFloat(v.String()))
			d.Floats[name] = true
		}
	default:
		d.Put(name, fmt.Sprint(v))
	}
}
