package configdata

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
)

// legacyFiles finds the documents of the config files the way Spring Boot did
// before 2.4, and still does until 2.7 with spring.config.use-legacy-processing
// (ConfigFileApplicationListener): the files of one profile after the other, so
// that any file of a profile beats every file that is nobody's.
type legacyFiles struct {
	im       *importer
	existing []*properties.Document
	resolver *properties.Resolver
	wildcard bool // config/*/ is searched (2.3)

	cache     map[string][]*legacyDocument
	queue     []legacyProfile
	processed []legacyProfile
	accepted  []string // profiles of Spring's Environment so far
	activated bool
	order     []string // profiles in the order in which something was loaded for them
	loaded    map[string][]*properties.Document
}

// legacyProfile is a profile to be processed; the empty name stands for the
// files that belong to none.
type legacyProfile struct {
	name      string
	isDefault bool
}

// legacyDocument is a document with its own spring.profiles properties.
type legacyDocument struct {
	doc                       *properties.Document
	profiles, active, include []string
}

// legacyFilter says which documents a pass takes.
type legacyFilter func(d *legacyDocument) bool

func (lf *legacyFiles) run() ([]*properties.Document, []string) {
	lf.cache, lf.loaded = map[string][]*legacyDocument{}, map[string][]*properties.Document{}
	lf.im.limitNames(lf.list("spring.config.name", "application"))
	slices.Reverse(lf.im.names)
	lf.initialize()
	for len(lf.queue) > 0 {
		if len(lf.processed) > maxProfiles {
			lf.im.unavailable("profiles", fmt.Sprintf("more than %d are active", maxProfiles), "")
			break
		}
		next := lf.queue[0]
		lf.queue = lf.queue[1:]
		if next.name != "" && !next.isDefault && !slices.Contains(lf.accepted, next.name) {
			lf.accepted = append(lf.accepted, next.name)
		}
		lf.pass(next, lf.positive, lf.addLast)
		lf.processed = append(lf.processed, next)
	}
	lf.pass(legacyProfile{}, lf.negative, lf.addFirst)
	return lf.result()
}

// initialize fills the queue from the sources that are no files.
func (lf *legacyFiles) initialize() {
	lf.queue = []legacyProfile{{}}
	for _, name := range lf.list("spring.profiles.include", "") {
		lf.queue = append(lf.queue, legacyProfile{name: name})
	}
	lf.activate(lf.list("spring.profiles.active", ""))
	if len(lf.queue) == 1 {
		for _, name := range lf.list("spring.profiles.default", "default") {
			lf.queue = append(lf.queue, legacyProfile{name, true})
		}
	}
}

// activate takes the first spring.profiles.active that is met, and no other.
func (lf *legacyFiles) activate(names []string) {
	if len(names) == 0 || lf.activated {
		return
	}
	for _, name := range names {
		lf.queue = append(lf.queue, legacyProfile{name: name})
	}
	lf.activated = true
	lf.queue = slices.DeleteFunc(lf.queue, func(p legacyProfile) bool { return p.isDefault })
}

// include puts the included profiles in front of those that wait.
func (lf *legacyFiles) include(names []string) {
	var front []legacyProfile
	for _, name := range names {
		if p := (legacyProfile{name: name}); !slices.Contains(lf.processed, p) {
			front = append(front, p)
		}
	}
	lf.queue = append(front, lf.queue...)
	lf.queue = lf.queue[:min(len(lf.queue), 2*maxProfiles)]
}

// positive takes what belongs to the profile of the pass.
func (lf *legacyFiles) positive(profile string) legacyFilter {
	return func(d *legacyDocument) bool {
		if profile == "" {
			return len(d.profiles) == 0
		}
		return slices.Contains(d.profiles, profile) && lf.accepts(d.profiles)
	}
}

// negative takes, in the last pass, what depends on profiles and was not taken:
// documents on "!prod".
func (lf *legacyFiles) negative(profile string) legacyFilter {
	return func(d *legacyDocument) bool {
		return profile == "" && len(d.profiles) > 0 && lf.accepts(d.profiles)
	}
}

func (lf *legacyFiles) accepts(exprs []string) bool {
	active := lf.accepted
	if len(active) == 0 {
		active = lf.list("spring.profiles.default", "default")
	}
	return slices.ContainsFunc(exprs, func(expr string) bool {
		ok, err := matchProfiles(expr, active)
		return ok && err == nil
	})
}

// pass loads the files of all locations for one profile, the strongest location first.
func (lf *legacyFiles) pass(p legacyProfile, filters func(string) legacyFilter, add func(string, *properties.Document)) {
	for _, at := range lf.locations() {
		if !strings.HasSuffix(at, "/") {
			if refs := references(location{value: at}, at, "", nil); len(refs) > 0 && !strings.HasSuffix(at, "]") {
				lf.load(at, refs[0].ext, p.name, filters(p.name), add)
			} else {
				lf.im.unavailable("config location "+at, "its file extension is not one that Spring Boot loads", "")
			}
			continue
		}
		for _, name := range lf.im.names {
			for _, ext := range []string{"properties", "xml", "yml", "yaml"} {
				lf.loadNamed(at+name, ext, p.name, filters, add)
			}
		}
	}
}

// loadNamed loads a profile's own file and the sections for it in the others.
func (lf *legacyFiles) loadNamed(prefix, ext, profile string, filters func(string) legacyFilter, add func(string, *properties.Document)) {
	if profile != "" {
		path := prefix + "-" + profile + "." + ext
		lf.load(path, ext, profile, filters(""), add)
		lf.load(path, ext, profile, filters(profile), add)
		for _, before := range lf.processed {
			if before.name != "" {
				lf.load(prefix+"-"+before.name+"."+ext, ext, profile, filters(profile), add)
			}
		}
	}
	lf.load(prefix+"."+ext, ext, profile, filters(profile), add)
}

func (lf *legacyFiles) load(at, ext, profile string, filter legacyFilter, add func(string, *properties.Document)) {
	ref := reference{loc: location{value: at, optional: true}, resource: at, ext: ext}
	for _, cand := range lf.im.referenced(ref) {
		var taken []*properties.Document
		for _, d := range lf.documents(cand) {
			if filter(d) {
				lf.activate(d.active)
				lf.include(d.include)
				taken = append(taken, d.doc)
			}
		}
		for _, doc := range slices.Backward(taken) {
			add(profile, doc)
		}
	}
}

// documents parses a file once.
func (lf *legacyFiles) documents(cand candidate) []*legacyDocument {
	if docs, ok := lf.cache[cand.id]; ok {
		return docs
	}
	parsed, err := cand.load()
	if lf.im.docs += len(parsed); err == nil && lf.im.docs > properties.MaxConfigDocs {
		parsed, err = nil, properties.ErrDocuments
	}
	if err != nil {
		lf.im.unread(configFile, cand.id, err.Error(), "")
	}
	docs := []*legacyDocument{}
	for _, d := range parsed {
		ld := &legacyDocument{doc: d}
		ld.profiles, _, _ = d.List("spring.profiles", lf.resolver)
		ld.active, _, _ = d.List("spring.profiles.active", lf.resolver)
		ld.include, _, _ = d.List("spring.profiles.include", lf.resolver)
		if len(ld.profiles) > 0 {
			d.Label += ", profile " + lf.im.secret.apply(strings.Join(ld.profiles, " or "))
		}
		docs = append(docs, ld)
	}
	lf.cache[cand.id] = docs
	return docs
}

// addLast puts a document behind those of its profile.
func (lf *legacyFiles) addLast(profile string, d *properties.Document) {
	lf.begin(profile)
	others := slices.DeleteFunc(lf.loaded[profile], func(o *properties.Document) bool { return o == d })
	lf.loaded[profile] = append(others, d)
}

// addFirst puts a document in front, if no profile has it.
func (lf *legacyFiles) addFirst(profile string, d *properties.Document) {
	for _, docs := range lf.loaded {
		if slices.Contains(docs, d) {
			return
		}
	}
	lf.begin(profile)
	lf.loaded[profile] = slices.Insert(lf.loaded[profile], 0, d)
}

func (lf *legacyFiles) begin(profile string) {
	if _, ok := lf.loaded[profile]; !ok {
		lf.order = append(lf.order, profile)
	}
}

// result lists the documents, those of the profile that was loaded last first.
func (lf *legacyFiles) result() (docs []*properties.Document, profiles []string) {
	for _, profile := range slices.Backward(lf.order) {
		for _, d := range lf.loaded[profile] {
			if !slices.Contains(docs, d) {
				docs = append(docs, d)
			}
		}
	}
	for _, p := range lf.processed {
		if p.name != "" && !p.isDefault && !slices.Contains(profiles, p.name) {
			profiles = append(profiles, p.name)
		}
	}
	if len(profiles) == 0 {
		profiles = lf.list("spring.profiles.default", "default")
	}
	return docs, profiles
}

// locations are the search locations, the strongest first.
func (lf *legacyFiles) locations() []string {
	standard := "classpath:/,classpath:/config/,file:./,file:./config/*/,file:./config/"
	if !lf.wildcard {
		standard = "classpath:/,classpath:/config/,file:./,file:./config/"
	}
	var out []string
	for _, list := range [][]string{
		lf.list("spring.config.additional-location", ""), lf.list("spring.config.location", standard),
	} {
		for _, at := range slices.Backward(list) {
			at = parseLocation(at).value
			if scheme(at) == "" {
				at = "file:" + at
			}
			if !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// list is a list of the sources that are no files.
func (lf *legacyFiles) list(name, fallback string) []string {
	list, err := properties.LookupList(lf.existing, name, lf.resolver)
	if err != nil {
		lf.im.unavailable(name, err.Error(), "")
	}
	if len(list) == 0 {
		return properties.SplitComma(fallback)
	}
	return list
}
