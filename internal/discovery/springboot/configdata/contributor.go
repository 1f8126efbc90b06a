package configdata

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
)

// contributorKind says what a contributor stands for
// (ConfigDataEnvironmentContributor.Kind).
type contributorKind int

const (
	rootKind contributorKind = iota
	initialImport
	existing
	unbound // its imports and its activation are not yet read
	bound
)

// phase is when imports are processed (ImportPhase): the first time before the
// active profiles are known, the second time after.
type phase int

const (
	before phase = iota
	after
	phases
)

// contributor is a document, with the documents that it imports below it. Its
// inOrder has the highest precedence first: what was imported once the profiles
// were known, what was imported before, then the document itself.
type contributor struct {
	kind            contributorKind
	doc             *properties.Document
	parent          string // resource location, the base of relative imports
	profileSpecific bool
	imports         []location
	activate        *activation
	children        [phases][]*contributor
	processed       [phases]bool
}

func (c *contributor) active(ctx *activationContext) bool {
	return c.kind != unbound && (c.activate == nil || c.activate.active(ctx))
}

// inOrder visits the tree by falling precedence.
func (c *contributor) inOrder() iter.Seq[*contributor] {
	return func(yield func(*contributor) bool) { c.visit(yield) }
}

func (c *contributor) visit(yield func(*contributor) bool) bool {
	for _, ph := range []phase{after, before} {
		for _, child := range c.children[ph] {
			if !child.visit(yield) {
				return false
			}
		}
	}
	return yield(c)
}

// setChildren hangs the imported documents below c. Files of profiles that
// were imported by c's children rise to c itself, so that a profile's file
// beats every file that is nobody's, wherever the two stand in one group.
func (c *contributor) setChildren(ph phase, children []*contributor) {
	c.children[ph] = children
	c.processed[ph] = true
	if ph != after || !slices.ContainsFunc(c.children[before], hasProfileSpecificChild) {
		return
	}
	var moved []*contributor
	for _, child := range c.children[before] {
		moved = append(moved, child.takeProfileSpecific()...)
	}
	c.children[after] = append(moved, c.children[after]...)
}

func hasProfileSpecificChild(c *contributor) bool {
	for _, children := range c.children {
		if slices.ContainsFunc(children, func(ch *contributor) bool { return ch.profileSpecific }) {
			return true
		}
	}
	return false
}

// takeProfileSpecific removes and returns the children that are profiles' own.
func (c *contributor) takeProfileSpecific() []*contributor {
	var taken []*contributor
	for ph := range phases {
		var children []*contributor
		for _, child := range c.children[ph] {
			if child.profileSpecific {
				child.profileSpecific = false
				taken = append(taken, child)
			} else {
				children = append(children, child)
			}
		}
		c.setChildren(ph, children)
	}
	return taken
}

// minRedacted is the shortest value that is worth hiding: replacing shorter
// ones would garble the text and hide nothing.
const minRedacted = 4

// redactions are the values that were put in the place of placeholders in names
// of files, locations and profiles: file:/etc/${TOKEN}.yml is shown as it was
// written.
type redactions map[string]string

func (r redactions) used(key, value string) {
	if len(value) >= minRedacted {
		r[value] = "${" + key + "}"
	}
}

// apply replaces the values, the longest first.
func (r redactions) apply(text string) string {
	values := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	for _, value := range values {
		text = strings.ReplaceAll(text, value, r[value])
	}
	return text
}
