package catalina

import (
	"slices"
	"strings"
)

// unread is what could not be read of the system properties, the zero value
// nothing.
type unread struct {
	what string
	// first: it beats whatever is known, as catalina.properties does. Else what
	// is known beats it: of the JVM's options in the environment, only
	// _JAVA_OPTIONS would beat -D, and nobody sets limits there.
	first bool
}

// judge says what a replaced text is worth: hidden when a ${…} in it was left
// that may stand for something, with a doubt when another source may say
// otherwise.
func (u unread) judge(replaced string, via []Property) (hidden bool, doubt string) {
	isDefault := func(p Property) bool { return p.Source == "" }
	switch {
	case u.what == "":
		return false, ""
	case strings.Contains(replaced, "${"):
		return true, ""
	case u.first || slices.ContainsFunc(via, isDefault):
		return false, "uncertain: " + u.what + " could not be read and may say otherwise"
	}
	return false, ""
}
