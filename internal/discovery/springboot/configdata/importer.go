package configdata

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
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
	p       *launch.Process
	cp      *classpath.ClassPath
	names   []string // spring.config.name
	env     *properties.Document
	cache   map[string]resource
	dirs    map[string][]string
	loaded  map[string]bool // by resource id: nothing is applied twice
	missing []model.Unavailable
	docs    int   // documents loaded
	budget  int64 // bytes still to be read
	secret  redactions
	quota   *properties.Quota
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
	ref     string // resource location, the base of relative imports in it
	id      string
	profile string // the file is a profile's own
	load    func() ([]*properties.Document, error)
}

func newImporter(p *launch.Process, cp *classpath.ClassPath, env *properties.Document) *importer {
	return &importer{
		p: p, cp: cp, env: env, cache: map[string]resource{}, dirs: map[string][]string{}, loaded: map[string]bool{}, budget: maxConfigSum,
		secret: redactions{}, quota: properties.NewQuota(),
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
		out = append(out, im.file(ref, "file:"+classpath.JoinDir(classpath.JoinDir(filePath(dir), sub), rest))...)
	}
	return out
}

// subdirectories are the directories below dir, sorted, without those that
// Kubernetes hides behind "..".
func (im *importer) subdirectories(dir string) []string {
	if known, ok := im.dirs[dir]; ok {
		return known
	}
	entries, err := im.p.List(dir)
	if err != nil && !classpath.Absent(err) {
		im.unread(configDirectory, dir, launch.Reason(err), "run as the process's user")
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
	case classpath.Absent(res.err):
		if !ref.skippable() {
			im.unread(configFile, at, "no such file now; the application needed it when it started", "")
		}
		return nil
	default:
		im.unread(configFile, at, launch.Reason(res.err), "run as the process's user, or as root")
		return nil
	}
	return []candidate{{
		ref: at, id: res.id, profile: ref.profile,
		load: func() ([]*properties.Document, error) { return im.parse(ref.ext, res.data, res.label) },
	}}
}

// fetch reads a resource location once.
func (im *importer) fetch(at string) resource {
	if res, ok := im.cache[at]; ok {
		return res
	}
	res := im.read(at)
	if im.budget -= int64(len(res.data)); im.budget < 0 {
		res = resource{err: fmt.Errorf("%w (%d bytes of config files in all)", bounded.ErrTooLarge, maxConfigSum)}
	}
	im.cache[at] = res
	return res
}

func (im *importer) read(at string) resource {
	if name, ok := strings.CutPrefix(at, "classpath:"); ok {
		name = path.Clean("/" + name)[1:]
		data, pl, err := im.cp.Find(im.p, name, maxConfigFile)
		if err != nil {
			return resource{err: err}
		}
		if pl.Dir != "" {
			file := path.Clean(classpath.JoinDir(pl.Dir, name))
			return resource{id: file, label: im.secret.apply(file), data: data}
		}
		return resource{id: pl.ID + "!/" + name, label: im.secret.apply(name) + " in " + pl.Label, data: data}
	}
	file := filePath(at)
	data, err := im.p.Read(file, maxConfigFile)
	return resource{id: file, label: im.secret.apply(file), data: data, err: err}
}

// parse parses a config file by its extension. One that is too much leaves the
// quota to the others.
func (im *importer) parse(ext string, data []byte, label string) ([]*properties.Document, error) {
	left := *im.quota
	docs, err := im.parseAs(ext, data, label, &left)
	if err == nil {
		*im.quota = left
	}
	return docs, err
}

func (im *importer) parseAs(ext string, data []byte, label string, left *properties.Quota) ([]*properties.Document, error) {
	switch ext {
	case "properties":
		return properties.Parse(data, label, !im.oneDocument, left)
	case "xml":
		return properties.ParseXML(data, label, left)
	}
	return properties.ParseYAML(data, label, left)
}

// load reads the candidates that were not loaded before; the result has the
// highest precedence first.
func (im *importer) load(cands []candidate) []*contributor {
	var out []*contributor
	for _, cand := range slices.Backward(cands) {
		if im.loaded[cand.id] {
			continue
		}
		if len(im.loaded) > properties.MaxConfigDocs {
			im.unavailable("config files", "more than 256 are not read", "")
			break
		}
		im.loaded[cand.id] = true
		docs, err := cand.load()
		if err != nil {
			im.unread(configFile, cand.id, err.Error(), "")
		}
		if im.docs += len(docs); im.docs > properties.MaxConfigDocs {
			im.unread(configFile, cand.id, properties.ErrDocuments.Error(), "")
			continue
		}
		for _, d := range slices.Backward(docs) {
			out = append(out, &contributor{kind: unbound, doc: d, parent: cand.ref, profileSpecific: cand.profile != ""})
		}
	}
	return out
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
