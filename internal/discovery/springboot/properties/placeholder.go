package properties

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
)

// Errors of placeholders.
var (
	// ErrCircular is a placeholder that leads back to itself.
	ErrCircular = errors.New("circular placeholder reference")
	// ErrRandom is a value that the application drew at random.
	ErrRandom = errors.New("random: drawn when the application started")
)

const (
	maxPlaceholderText  = 64 << 10
	maxPlaceholderSteps = 1000
)

// Resolver replaces ${name} and ${name:default} in values, nested ones too, as
// PropertyPlaceholderHelper does; what cannot be resolved stays as it is.
type Resolver struct {
	Lookup  func(name string) (string, bool)
	Escapes bool // a backslash in front of "${" (Spring Framework 6.2, Boot 3.4)
	// Used hears what was put in a placeholder's place; may be nil.
	Used  func(key, value string)
	steps int
	Total *int // steps of all values so far; may be nil
}

// Resolve replaces the placeholders of one value.
func (r *Resolver) Resolve(text string) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	if len(text) > maxPlaceholderText {
		return "", fmt.Errorf("placeholders: %w (%d bytes)", bounded.ErrTooLarge, maxPlaceholderText)
	}
	r.steps = 0
	return r.text(text, nil)
}

func (r *Resolver) text(text string, visited []string) (string, error) {
	if r.Total != nil {
		*r.Total++
	}
	if r.steps++; r.steps > maxPlaceholderSteps || r.Total != nil && *r.Total > maxSteps {
		return "", fmt.Errorf("placeholders: %w (%d steps)", bounded.ErrTooLarge, maxPlaceholderSteps)
	}
	var out strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			break
		}
		if r.Escapes && start > 0 && text[start-1] == '\\' {
			out.WriteString(text[:start-1] + "${")
			text = text[start+2:]
			continue
		}
		end := placeholderEnd(text, start+2)
		if end < 0 {
			break
		}
		value, ok, err := r.placeholder(text[start+2:end], visited)
		if err != nil {
			return "", err
		}
		if !ok {
			value = text[start : end+1]
		}
		out.WriteString(text[:start] + value)
		if text = text[end+1:]; out.Len()+len(text) > maxPlaceholderText {
			return "", fmt.Errorf("placeholders: %w (%d bytes)", bounded.ErrTooLarge, maxPlaceholderText)
		}
	}
	return out.String() + text, nil
}

// placeholder evaluates what is between "${" and "}".
func (r *Resolver) placeholder(inner string, visited []string) (string, bool, error) {
	for _, v := range visited {
		if v == inner {
			return "", false, ErrCircular
		}
	}
	visited = append(visited[:len(visited):len(visited)], inner)
	key, fallback, has := cutFallback(inner)
	name, err := r.text(key, visited)
	if err != nil {
		return "", false, err
	}
	value, ok := r.lookupKey(name, fallback, has)
	if ok && r.Used != nil {
		r.Used(key, value)
	}
	if !ok && strings.HasPrefix(name, "random.") {
		return "", false, ErrRandom
	}
	if !ok && !has {
		// A colon may have come with what stood in the name's place.
		if name, fallback, has = strings.Cut(name, ":"); has {
			value, ok = r.Lookup(name)
		}
	}
	if !ok && has {
		value, ok = fallback, true
	}
	if !ok {
		return "", false, nil
	}
	value, err = r.text(value, visited)
	return value, true, err
}

// lookupKey looks a name up, first together with its default: that is a name too.
func (r *Resolver) lookupKey(name, fallback string, has bool) (string, bool) {
	if has {
		if value, ok := r.Lookup(name + ":" + fallback); ok {
			return value, true
		}
	}
	return r.Lookup(name)
}

// cutFallback parts a placeholder's name from its default, at the first colon
// that is in no placeholder of its own. The default is evaluated only where
// it is used (PlaceholderParser of Spring Framework 6.2; before, evaluating one
// that leads back to itself kept the application from starting).
func cutFallback(inner string) (key, fallback string, has bool) {
	for i := 0; i < len(inner); i++ {
		switch {
		case inner[i] == ':':
			return inner[:i], inner[i+1:], true
		case strings.HasPrefix(inner[i:], "${"):
			end := placeholderEnd(inner, i+2)
			if end < 0 {
				return inner, "", false
			}
			i = end
		}
	}
	return inner, "", false
}

// placeholderEnd finds the brace that closes the placeholder whose inside
// begins at i, minding nested braces.
func placeholderEnd(text string, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}
