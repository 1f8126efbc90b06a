package properties

import "strings"

// Uniform brings every spelling of a property's name to one form, the one that
// ConfigurationPropertyName compares by: each element lower-cased and without
// anything but letters and digits, numbers in brackets as they are. "server.tomcat.
// acceptCount", "SERVER.tomcat.accept_count" and "server.tomcat.accept-count"
// are all "server.tomcat.acceptcount".
func Uniform(name string) string {
	var b strings.Builder
	b.Grow(len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '[':
			if end := strings.IndexByte(name[i:], ']'); end > 0 && isNumber(name[i+1:i+end]) {
				b.WriteString(name[i : i+end+1])
				i += end
			} else if b.Len() > 0 {
				b.WriteByte('.')
			}
		case c == '.' || isDigit(c) || 'a' <= c && c <= 'z':
			b.WriteByte(c)
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		}
	}
	return b.String()
}

// UniformEnv is uniform for a variable of the environment: "_" separates the
// elements, and one of digits only is an index (SystemEnvironmentPropertyMapper).
func UniformEnv(name string) string {
	var b strings.Builder
	b.Grow(len(name))
	for element := range strings.SplitSeq(name, "_") {
		if element == "" {
			continue
		}
		if isNumber(element) {
			b.WriteString("[" + element + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(Uniform(element))
	}
	return b.String()
}

// envNames are the variables that may hold a property, in the order in which
// they are tried: SERVER_TOMCAT_ACCEPTCOUNT, then the legacy
// SERVER_TOMCAT_ACCEPT_COUNT, then both in lower case.
func envNames(name string) []string {
	flat := strings.NewReplacer(".", "_", "[", "_", "]", "", "-", "").Replace(name)
	legacy := strings.NewReplacer(".", "_", "[", "_", "]", "", "-", "_").Replace(name)
	return []string{strings.ToUpper(flat), strings.ToUpper(legacy), flat, legacy}
}

// Canonical says whether a name is written the canonical way, lower-case
// letters, digits and dashes in elements that begin with a letter or a digit:
// only such placeholders are looked up by every spelling.
func Canonical(name string) bool {
	if name == "" {
		return false
	}
	start := true
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z' || isDigit(c):
			start = false
		case c == '.' && !start:
			start = true
		case (c == '-' || c == '[' || c == ']') && !start:
		default:
			return false
		}
	}
	return !start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
