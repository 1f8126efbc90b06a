// Package configdata finds a Spring Boot application's config files in the order of their
// precedence: locations, names, profiles, imports, config trees, and the conditions of
// their documents.
package configdata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
)

// configData finds the documents of the config files the way Spring Boot 2.4
// and later do (ConfigDataEnvironment).
type configData struct {
	existing []*properties.Document // arguments, JSON, system properties, environment
	root     *contributor
	im       *importer
	legacy   bool // spring.profiles in a document is its activation (until 2.7)
	escapes  bool
	ctx      *activationContext
	steps    int                    // placeholders resolved so far
	known    []*properties.Document // what documents last found; nil when that may be another now
}

// run returns the active documents of the config files, the highest precedence
// first, and the accepted profiles.
func (cd *configData) run() ([]*properties.Document, []string) {
	cd.root = &contributor{kind: rootKind}
	for _, d := range cd.existing {
		cd.root.children[before] = append(cd.root.children[before], &contributor{kind: existing, doc: d})
	}
	cd.im.limitNames(cd.list("spring.config.name", []string{"application"}))
	cd.addInitialImports()
	cd.process(nil)
	ctx := &activationContext{cloud: cloudPlatform(cd.scalar("spring.main.cloud-platform"), cd.im.env)}
	cd.ctx, cd.known = ctx, nil
	cd.process(ctx)
	cd.known = nil
	profiles := cd.profiles()
	ctx = &activationContext{cloud: ctx.cloud, profiles: profiles, known: true}
	cd.ctx, cd.known = ctx, nil
	cd.process(ctx)
	var docs []*properties.Document
	for c := range cd.root.inOrder() {
		if c.kind == bound && c.active(ctx) {
			docs = append(docs, c.doc)
		}
	}
	return docs, ctx.profiles
}

// addInitialImports adds the search locations; the last is the strongest, and
// spring.config.import beats them all.
func (cd *configData) addInitialImports() {
	add := func(locs []location) {
		if len(locs) > 0 {
			cd.root.children[before] = append(cd.root.children[before], &contributor{kind: initialImport, imports: locs})
		}
	}
	add(cd.locations("spring.config.import"))
	for _, loc := range slices.Backward(cd.locations("spring.config.additional-location")) {
		add([]location{loc})
	}
	locs := cd.locations("spring.config.location")
	if len(locs) == 0 {
		locs = defaultLocations()
	}
	for _, loc := range slices.Backward(locs) {
		add([]location{loc})
	}
}

func (cd *configData) locations(name string) []location {
	return cd.im.limitLocations(parseLocations(cd.list(name, nil)))
}

// process follows imports until there are none left that ctx allows.
func (cd *configData) process(ctx *activationContext) {
	ph := before
	var profiles []string
	if ctx != nil && ctx.known {
		ph, profiles = after, ctx.profiles
	}
	for range maxImports {
		c := cd.next(ctx, ph)
		if c == nil {
			return
		}
		cd.known = nil
		if c.kind == unbound {
			cd.bind(c)
			continue
		}
		c.setChildren(ph, cd.im.load(cd.im.resolve(c.imports, c.parent, profiles)))
	}
	cd.im.unavailable("config imports", "more than 256 are not followed", "")
}

// next is the first contributor that has something left to process.
func (cd *configData) next(ctx *activationContext, ph phase) *contributor {
	for c := range cd.root.inOrder() {
		if c.kind == unbound || c.active(ctx) && len(c.imports) > 0 && !c.processed[ph] {
			return c
		}
	}
	return nil
}

// bind reads a document's own spring.config properties (ConfigDataProperties).
func (cd *configData) bind(c *contributor) {
	c.kind = bound
	r := cd.resolver()
	document := []*properties.Document{c.doc}
	read := func(name string) []string {
		list, err := properties.LookupList(document, name, r)
		if err != nil {
			cd.im.unavailable(name+" of "+c.doc.Label, err.Error(), "")
		}
		return list
	}
	c.imports = cd.im.limitLocations(parseLocations(read("spring.config.import")))
	a := activation{profiles: read("spring.config.activate.on-profile"), cloud: strings.Join(read("spring.config.activate.on-cloud-platform"), "")}
	if cd.legacy && len(a.profiles) == 0 {
		a.profiles = read("spring.profiles")
	}
	if len(a.profiles) > 0 || a.cloud != "" {
		c.activate = &a
		c.doc.Label += ", " + cd.im.secret.apply(a.String())
	}
}

// documents are all documents so far by falling precedence, inactive ones left out.
func (cd *configData) documents() []*properties.Document {
	if cd.known != nil {
		return cd.known
	}
	docs := []*properties.Document{}
	for c := range cd.root.inOrder() {
		if c.doc != nil && c.active(cd.ctx) {
			docs = append(docs, c.doc)
		}
	}
	cd.known = docs
	return docs
}

// resolver resolves placeholders while the files are still being found: only
// what is not a file answers to every spelling.
func (cd *configData) resolver() *properties.Resolver {
	return &properties.Resolver{Escapes: cd.escapes, Total: &cd.steps, Used: cd.im.secret.used, Lookup: func(name string) (string, bool) {
		if properties.Canonical(name) {
			if f, ok := properties.Lookup(cd.existing, name); ok {
				return f.Text, true
			}
		}
		return properties.RawLookup(cd.documents(), name)
	}}
}

func (cd *configData) list(name string, fallback []string) []string {
	list, err := properties.LookupList(cd.documents(), name, cd.resolver())
	if err != nil {
		cd.im.unavailable(name, err.Error(), "")
	}
	if len(list) == 0 {
		return fallback
	}
	return list
}

func (cd *configData) scalar(name string) string {
	return strings.Join(cd.list(name, nil), ",")
}

// profiles are the accepted profiles: the included ones, then the active ones,
// each followed by the members of its group; without any, the default ones.
func (cd *configData) profiles() []string {
	var names []string
	for c := range cd.root.inOrder() {
		if c.doc == nil || !c.active(cd.ctx) {
			continue
		}
		list, _, err := c.doc.List("spring.profiles.include", cd.resolver())
		if err != nil {
			cd.im.unavailable("spring.profiles.include of "+c.doc.Label, err.Error(), "")
		}
		names = append(names, list...)
	}
	names = append(names, cd.list("spring.profiles.active", nil)...)
	groups, err := properties.LookupMap(cd.documents(), "spring.profiles.group", cd.resolver())
	if err != nil {
		cd.im.unavailable("spring.profiles.group", err.Error(), "")
	}
	if len(names) == 0 {
		names = cd.list("spring.profiles.default", []string{"default"})
	}
	return cd.im.limitProfiles(expandProfiles(names, groups))
}

// limitProfiles cuts a list of profiles that no real application has.
func (im *importer) limitProfiles(profiles []string) []string {
	if len(profiles) <= maxProfiles {
		return profiles
	}
	im.unavailable("profiles", fmt.Sprintf("more than %d are active, the others are left out", maxProfiles), "")
	return profiles[:maxProfiles]
}

// expandProfiles puts each group's members behind its name, each profile once.
func expandProfiles(names []string, groups map[string][]string) []string {
	var out []string
	seen := map[string]bool{"": true}
	stack := slices.Clone(names)
	slices.Reverse(stack)
	for len(stack) > 0 && len(out) <= maxProfiles {
		current := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[current] {
			continue
		}
		seen[current] = true
		out = append(out, current)
		for _, member := range slices.Backward(groups[current]) {
			stack = append(stack, member)
		}
	}
	return out
}
