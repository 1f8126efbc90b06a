package catalina

import "strings"

const (
	// maxRounds is IntrospectionUtils.replaceProperties' own bound.
	maxRounds = 20
	// maxReplaced bounds what replacements can grow to.
	maxReplaced = 64 << 10
)

// replace does what IntrospectionUtils.replaceProperties does to an attribute:
// ${name} and ${name:-default}. What is not known stays as it is written. via
// are the properties that had a part in it.
func (s *sources) replace(text string) (out string, via []Property) {
	for range maxRounds {
		if s.replaced > maxReplacedSum {
			return text, via
		}
		next, used := s.round(text)
		s.replaced += len(next) + 64*len(used)
		via = append(via, used...)
		if next == text || !s.nested || len(next) > maxReplaced {
			return next, via
		}
		text = next
	}
	return text, via
}

func (s *sources) round(text string) (out string, via []Property) {
	var b strings.Builder
	for b.Len() <= maxReplaced {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		// The first brace ends the name, also that of a nested one.
		length := strings.IndexByte(text[start:], '}')
		if length < 0 {
			break
		}
		b.WriteString(text[:start])
		whole := text[start : start+length+1]
		if property, ok := s.reference(whole[2 : len(whole)-1]); ok {
			b.WriteString(property.Text)
			via = append(via, property)
		} else {
			b.WriteString(whole)
		}
		text = text[start+length+1:]
	}
	b.WriteString(text)
	return b.String(), via
}

// reference resolves what is between the braces. The whole of it is tried
// as a name first; a default has no source of its own.
func (s *sources) reference(name string) (Property, bool) {
	if property, ok := s.get(name); ok {
		return property, true
	}
	if !s.dashed {
		return Property{}, false
	}
	name, text, ok := strings.Cut(name, ":-")
	if !ok {
		return Property{}, false
	}
	if property, found := s.get(name); found {
		return property, true
	}
	return Property{Text: text}, true
}
