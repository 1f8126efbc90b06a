package springboot

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds on what config files can lead to. An application in real life stays below a
// tenth of each. What is beyond one is said once, without its text, and everything else
// continues.
const (
	maxConfigFile = 1 << 20 // bytes of one config file, uncompressed
	maxConfigSum  = 4 << 20 // of all of them
	maxImports    = 256
	maxNames      = 16 // spring.config.name
	maxProfiles   = 32
	maxMissing    = 48
)

// importer finds and reads config data (ConfigDataImporter and the resolvers
// and loaders behind it). Each file is read once.
type importer struct {
	p       *Process
	cp      *classPath
	names   []string // spring.config.name
	env     *document
	cache   map[string]resource
	dirs    map[string][]string
	loaded  map[string]bool // by resource id: nothing is applied twice
	missing []model.Unavailable
	docs    int   // documents loaded
	budget  int64 // bytes still to be read
	secret  redactions
	quota   *quota
	// oneDocument: a .properties file has no separators (before Spring Boot 2.4).
	oneDocument bool
}

// resource is a file found at a location.
type resource struct {
	id    string
	label string
	data  []byte
	err   error
}

// candidate is a resource to be loaded.
type candidate struct {
	loc     location
	ref     string // resource location, the base of relative imports in it
	id      string
	profile string // the file is a profile's own
	load    func() ([]*document, error)
}

func newImporter(p *Process, cp *classPath, env *document) *importer {
	return &importer{
		p: p, cp: cp, env: env, cache: map[string]resource{}, dirs: map[string][]string{}, loaded: map[string]bool{}, budget: maxConfigSum,
		secret: redactions{}, quota: newQuota(),
	}
}

// unavailable notes something once.
func (im *importer) unavailable(what, why, how string) {
	im.missed(model.SubjectOther, what, why, how)
}

// unread is a file or folder at a location.
func (im *importer) unread(kind, at, why, how string) {
	subject := model.SubjectOther
	if strings.HasPrefix(at, "file:./") || kind == configDirectory && !strings.HasPrefix(at, "/") {
		subject = model.SubjectWorkingFile
	}
	im.missed(subject, kind+at, why, how)
}

// What may be at a location.
const (
	configFile      = "config file "
	configDirectory = "config directory "
)

func (im *importer) missed(subject model.Subject, what, why, how string) {
	if len(im.missing) > maxMissing {
		return
	}
	if len(im.missing) == maxMissing {
		what, why, how = "more of the configuration", "too much to name", ""
	}
	u := model.Unavailable{What: im.secret.apply(what), Why: im.secret.apply(why), How: how, Subject: subject}
	if !slices.Contains(im.missing, u) {
		im.missing = append(im.missing, u)
	}
}

// resolve lists what is at the locations, in rising order of precedence:
// first what belongs to no profile, then, when the profiles are known, theirs.
func (im *importer) resolve(locs []location, parent string, profiles []string) []candidate {
	out := make([]candidate, 0, len(locs))
	for _, loc := range locs {
		out = append(out, im.resolveOne(loc, parent, profiles)...)
	}
	return out
}

func (im *importer) resolveOne(loc location, parent string, profiles []string) []candidate {
	switch s := scheme(loc.value); s {
	case "", "file", "classpath", "resource":
		out := im.standard(loc, parent, "")
		for _, profile := range profiles {
			out = append(out, im.standard(loc, parent, profile)...)
		}
		return out
	case "configtree":
		return im.configTrees(loc)
	case "env":
		return im.variable(loc)
	default:
		im.unavailable("settings imported from "+loc.shown(), "they are not on this machine (spring.config.import)",
			"ask the server behind it, or give the limits with --max-connections, --accept-count, --max-threads")
		return nil
	}
}

// standard lists the files of one group of locations for one profile.
func (im *importer) standard(loc location, parent, profile string) []candidate {
	var out []candidate
	for _, part := range loc.split() {
		at := against(part.value, parent)
		refs := references(part, at, profile, im.names)
		if len(refs) == 0 && !part.optional {
			im.unavailable("config location "+part.shown(), "its file extension is not one that Spring Boot loads", "")
		}
		found := len(out)
		for _, ref := range refs {
			out = append(out, im.referenced(ref)...)
		}
		if len(out) == found && !part.optional {
			im.mandatory(part, at)
		}
	}
	return out
}

// mandatory says that a directory is missing without which the application
// would not have started.
func (im *importer) mandatory(loc location, at string) {
	if !strings.HasSuffix(at, "/") || scheme(at) == "classpath" {
		return
	}
	dir, _, _ := strings.Cut(at, "*/")
	if _, err := im.p.list(filePath(dir)); err != nil {
		im.unavailable("config location "+loc.shown(), reason(err), "")
	}
}

// referenced is the file of a reference, or those below "*/".
func (im *importer) referenced(ref reference) []candidate {
	if !strings.Contains(ref.resource, "*") {
		return im.file(ref, ref.resource)
	}
	var out []candidate
	dir, rest, ok := strings.Cut(ref.resource, "*/")
	if !ok || strings.ContainsAny(rest, "*/") || scheme(dir) == "classpath" {
		return nil
	}
	for _, sub := range im.subdirectories(filePath(dir)) {
		out = append(out, im.file(ref, "file:"+joinDir(joinDir(filePath(dir), sub), rest))...)
	}
	return out
}

// subdirectories are the directories below dir, sorted, without those that
// Kubernetes hides behind "..".
func (im *importer) subdirectories(dir string) []string {
	if known, ok := im.dirs[dir]; ok {
		return known
	}
	entries, err := im.p.list(dir)
	if err != nil && !absent(err) {
		im.unread(configDirectory, dir, reason(err), "run as the process's user")
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") && !e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	im.dirs[dir] = out
	return out
}

// file is the candidate of one resource location, if there is a file.
func (im *importer) file(ref reference, at string) []candidate {
	res := im.fetch(at)
	switch {
	case res.err == nil:
	case absent(res.err):
		if !ref.skippable() {
			im.unread(configFile, at, "no such file now; the application needed it when it started", "")
		}
		return nil
	default:
		im.unread(configFile, at, reason(res.err), "run as the process's user, or as root")
		return nil
	}
	return []candidate{{
		loc: ref.loc, ref: at, id: res.id, profile: ref.profile,
		load: func() ([]*document, error) { return im.parse(ref.ext, res.data, res.label) },
	}}
}

// fetch reads a resource location once.
func (im *importer) fetch(at string) resource {
	if res, ok := im.cache[at]; ok {
		return res
	}
	res := im.read(at)
	if im.budget -= int64(len(res.data)); im.budget < 0 {
		res = resource{err: fmt.Errorf("%w (%d bytes of config files in all)", ErrTooLarge, maxConfigSum)}
	}
	im.cache[at] = res
	return res
}

func (im *importer) read(at string) resource {
	if name, ok := strings.CutPrefix(at, "classpath:"); ok {
		name = path.Clean("/" + name)[1:]
		data, pl, err := im.cp.find(im.p, name, maxConfigFile)
		if err != nil {
			return resource{err: err}
		}
		if pl.dir != "" {
			file := path.Clean(joinDir(pl.dir, name))
			return resource{id: file, label: im.secret.apply(file), data: data}
		}
		return resource{id: pl.id + "!/" + name, label: im.secret.apply(name) + " in " + pl.label, data: data}
	}
	file := filePath(at)
	data, err := im.p.read(file, maxConfigFile)
	return resource{id: file, label: im.secret.apply(file), data: data, err: err}
}

// parse parses a config file by its extension. One that is too much leaves the
// quota to the others.
func (im *importer) parse(ext string, data []byte, label string) ([]*document, error) {
	left := *im.quota
	docs, err := im.parseAs(ext, data, label, &left)
	if err == nil {
		*im.quota = left
	}
	return docs, err
}

func (im *importer) parseAs(ext string, data []byte, label string, left *quota) ([]*document, error) {
	switch ext {
	case "properties":
		return parseProperties(data, label, !im.oneDocument, left)
	case "xml":
		return parseXMLProperties(data, label, left)
	}
	return parseYAML(data, label, left)
}

// load reads the candidates that were not loaded before; the result has the
// highest precedence first.
func (im *importer) load(cands []candidate) []*contributor {
	var out []*contributor
	for _, cand := range slices.Backward(cands) {
		if im.loaded[cand.id] {
			continue
		}
		if len(im.loaded) > maxConfigDocs {
			im.unavailable("config files", "more than 256 are not read", "")
			break
		}
		im.loaded[cand.id] = true
		docs, err := cand.load()
		if err != nil {
			im.unread(configFile, cand.id, err.Error(), "")
		}
		if im.docs += len(docs); im.docs > maxConfigDocs {
			im.unread(configFile, cand.id, errDocuments.Error(), "")
			continue
		}
		for _, d := range slices.Backward(docs) {
			out = append(out, &contributor{kind: unbound, doc: d, parent: cand.ref, profileSpecific: cand.profile != ""})
		}
	}
	return out
}

// variable is the import of a variable that holds a whole file ("env:NAME", Boot 3.5).
func (im *importer) variable(loc location) []candidate {
	name, ext, ok := extensionHint(strings.TrimPrefix(loc.value, "env:"))
	if !ok {
		ext = "properties"
	}
	text, ok := im.env.values[name]
	if !ok {
		if !loc.optional {
			im.unavailable("config of env "+name, "the variable is not known", "")
		}
		return nil
	}
	return []candidate{{
		loc: loc, id: "env:" + name,
		load: func() ([]*document, error) { return im.parse(ext, []byte(text), "env "+name) },
	}}
}

// limitNames takes the names of config files to look for.
func (im *importer) limitNames(names []string) {
	if len(names) > maxNames {
		im.unavailable("spring.config.name", fmt.Sprintf("more than %d names, the others are left out", maxNames), "")
		names = names[:maxNames]
	}
	im.names = names
}

// limitLocations cuts a list of imports or locations that no real application has.
func (im *importer) limitLocations(locs []location) []location {
	if len(locs) > maxImports {
		im.unavailable("config locations", fmt.Sprintf("more than %d in one list, the others are left out", maxImports), "")
		locs = locs[:maxImports]
	}
	return locs
}
