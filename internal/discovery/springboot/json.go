package springboot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// flattenJSON puts the leaves of a JSON object. Numbers keep their spelling.
func flattenJSON(text string, d *document) error {
	if len(text) > maxJSON {
		return ErrTooLarge
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return malformedJSON(err)
	}
	flattenJSONMap("", root, d)
	return d.quota.err()
}

func flattenJSONMap(prefix string, m map[string]any, d *document) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if len(k) > maxKey {
			d.quota.over = true
			return
		}
		flattenJSONValue(prefix+k, m[k], d)
	}
}

func flattenJSONValue(name string, v any, d *document) {
	if len(name) > maxKey {
		d.quota.over = true
	}
	if d.quota.over {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		flattenJSONMap(name+".", v, d)
	case []any:
		if len(v) > maxElements {
			d.quota.over = true
			return
		}
		for i, e := range v {
			flattenJSONValue(indexed(name, i), e, d)
		}
	case nil: // a null is no value: the next source is asked
	case json.Number:
		d.put(name, v.String())
		if strings.ContainsAny(v.String(), ".eE") {
			d.put(name, javaFloat(v.String()))
			d.floats[name] = true
		}
	default:
		d.put(name, fmt.Sprint(v))
	}
}
