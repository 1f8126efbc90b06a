package incident

import (
	"bytes"
	"encoding/json"
)

// diff is the JSON merge patch (RFC 7396) that makes one document of another,
// nil where they are equal. What is null is taken for absent.
func diff(from, to json.RawMessage) (json.RawMessage, error) {
	if bytes.Equal(from, to) {
		return nil, nil
	}
	if !isObject(from) || !isObject(to) {
		return to, nil
	}
	var was, is map[string]json.RawMessage
	if err := json.Unmarshal(from, &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(to, &is); err != nil {
		return nil, err
	}
	patch := make(map[string]json.RawMessage)
	for name, value := range is {
		old, ok := was[name]
		if !ok {
			old = json.RawMessage("null")
		}
		change, err := diff(old, value)
		if err != nil {
			return nil, err
		}
		if change != nil {
			patch[name] = change
		}
	}
	for name, old := range was {
		if _, still := is[name]; !still && !isNull(old) {
			patch[name] = json.RawMessage("null")
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return json.Marshal(patch)
}

func isObject(m json.RawMessage) bool { return len(m) > 0 && m[0] == '{' }
func isNull(m json.RawMessage) bool   { return string(m) == "null" }

// merge applies a merge patch (RFC 7396) to a document.
func merge(document, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := document.(map[string]any)
	if !ok {
		out = make(map[string]any, len(changes))
	}
	for name, value := range changes {
		if value == nil {
			delete(out, name)
			continue
		}
		out[name] = merge(out[name], value)
	}
	return out
}
