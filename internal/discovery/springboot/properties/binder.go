package properties

import "strings"

// Found is a property as a document has it, placeholders not yet replaced.
type Found struct {
	Text string
	Name string // as the document spells it
	Doc  *Document
}

// Lookup returns the first document's value of the canonical name.
func Lookup(docs []*Document, name string) (Found, bool) {
	key := Uniform(name)
	for _, d := range docs {
		if n, ok := d.findAs(name, key); ok {
			return Found{d.Values[n], n, d}, true
		}
	}
	return Found{}, false
}

// LookupList returns a list property: the elements of the first document that
// has any, written with commas or with indexes.
func LookupList(docs []*Document, name string, r *Resolver) ([]string, error) {
	for _, d := range docs {
		list, ok, err := d.List(name, r)
		if ok || err != nil {
			return list, err
		}
	}
	return nil, nil
}

// List is a list by its name: with commas in one value, or with an index in each name.
func (d *Document) List(name string, r *Resolver) ([]string, bool, error) {
	if n, ok := d.find(name); ok {
		text, err := r.Resolve(d.Values[n])
		if err == nil && strings.Count(text, ",") >= maxElements {
			return nil, true, errElements
		}
		return SplitComma(text), true, err
	}
	var list []string
	for i := range maxElements {
		n, ok := d.find(indexed(name, i))
		if !ok {
			break
		}
		text, err := r.Resolve(d.Values[n])
		if err != nil {
			return nil, true, err
		}
		list = append(list, text)
	}
	return list, len(list) > 0, nil
}

// SplitComma are the parts of a list with commas, without the blanks around them.
func SplitComma(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

// LookupMap returns the lists below a prefix, by key; of one key the first
// document's counts.
func LookupMap(docs []*Document, prefix string, r *Resolver) (map[string][]string, error) {
	out := map[string][]string{}
	for _, d := range docs {
		for _, key := range d.keysBelow(prefix) {
			if _, taken := out[key]; taken {
				continue
			}
			list, ok, err := d.List(prefix+"."+key, r)
			if err != nil {
				return nil, err
			}
			if ok {
				out[key] = list
			}
		}
	}
	return out, nil
}

// keysBelow are the distinct next elements of the names below prefix.
func (d *Document) keysBelow(prefix string) []string {
	var keys []string
	seen := map[string]bool{}
	want := Uniform(prefix) + "."
	for _, name := range d.Names {
		full := Uniform(name)
		rest := name
		if d.Env {
			if full = UniformEnv(name); strings.HasPrefix(full, want) {
				rest = full[len(want):]
			}
		} else if strings.HasPrefix(full, want) {
			rest = dropElements(name, strings.Count(want, "."))
		}
		if !strings.HasPrefix(full, want) {
			continue
		}
		key, _, _ := strings.Cut(strings.Trim(rest, "[]"), "[")
		if key = strings.TrimSuffix(key, "]"); key != "" && !seen[key] && len(keys) < maxGroups {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// dropElements drops the first n dotted elements of a name.
func dropElements(name string, n int) string {
	for range n {
		_, name, _ = strings.Cut(name, ".")
	}
	return name
}

// NewResolver looks placeholders up in every document, by every spelling if the
// placeholder is written canonically, else as it is written. used hears what was put in
// a placeholder's place; it may be nil.
func NewResolver(docs []*Document, escapes bool, used func(key, value string)) *Resolver {
	return &Resolver{Escapes: escapes, Used: used, Lookup: func(name string) (string, bool) {
		if Canonical(name) {
			if f, ok := Lookup(docs, name); ok {
				return f.Text, true
			}
		}
		return RawLookup(docs, name)
	}}
}

// RawLookup returns the first document's value of a name as it is written.
func RawLookup(docs []*Document, name string) (string, bool) {
	for _, d := range docs {
		if v, ok := d.Raw(name); ok {
			return v, true
		}
	}
	return "", false
}
