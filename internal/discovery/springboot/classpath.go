package springboot

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// classPath is where the class loader finds resources, in its order.
type classPath struct {
	places   []*place
	own      []*place          // those of places that hold the application's own classes
	manifest map[string]string // of the application's jar or exploded directory
	kind     Kind
	missing  []model.Unavailable
	files    []*os.File // open jars
	archives archives
	over     bool // some jars were too much
}

func (c *classPath) close() {
	for _, f := range c.files {
		_ = f.Close()
	}
	c.files = nil
}

// newClassPath works out the class path of a command line.
func newClassPath(p *Process, l *launch) *classPath {
	c := &classPath{manifest: map[string]string{}, archives: newArchives()}
	if l.jar != "" {
		c.addJarApplication(p, l)
	} else {
		c.addClassPathApplication(p, l)
	}
	if len(c.places) > maxClassPath {
		c.places = c.places[:maxClassPath]
		c.missing = append(c.missing, model.Unavailable{What: "class path", Why: "its entries beyond the first 1,000 are not read"})
	}
	return c
}

// addJarApplication is java -jar: an executable jar or war of Spring Boot, or
// an ordinary one with a Class-Path (also what jarmode "extract" leaves).
func (c *classPath) addJarApplication(p *Process, l *launch) {
	jar := c.fileJar(p, l.jar, keepAll)
	if _, err := jar.archive(); err != nil {
		c.missing = append(c.missing, model.Unavailable{
			What: "application jar " + l.jar, Why: reason(err),
			How: "run as a user that can read it; if it was replaced while running, restart the application",
		})
		return
	}
	c.readManifest(p, jar)
	if kind, ok := bootArchive(c.manifest, jar.names()); ok {
		c.kind = kind
		c.addArchive(p, l, jar, c.manifest["main-class"])
		return
	}
	c.kind = KindClassPath
	c.places, c.own = append(c.places, jar), append(c.own, jar)
	c.addManifestClassPath(p, jar)
}

func (c *classPath) readManifest(p *Process, pl *place) {
	data, err := pl.read(p, manifestName, maxManifest)
	if err == nil {
		c.manifest = parseManifest(string(data))
	}
}

// bootArchive says whether a jar is one that Spring Boot's loader starts.
func bootArchive(manifest map[string]string, names []string) (Kind, bool) {
	kind := KindJar
	if strings.HasSuffix(manifest["main-class"], ".WarLauncher") ||
		slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "WEB-INF/") }) {
		kind = KindWar
	}
	return kind, isLoader(manifest["main-class"])
}

// isLoader knows the launcher classes: org.springframework.boot.loader.* up to
// 3.1, org.springframework.boot.loader.launch.* since 3.2.
func isLoader(main string) bool {
	return strings.HasPrefix(main, "org.springframework.boot.loader.") && strings.HasSuffix(main, "Launcher")
}

// addArchive adds the places of an executable archive, packed or exploded. The
// archive's root is first: it is the parent class loader's.
func (c *classPath) addArchive(p *Process, l *launch, root *place, launcher string) {
	c.places = append(c.places, root)
	if strings.HasSuffix(launcher, ".PropertiesLauncher") {
		c.addLoaderPath(p, l, root)
	}
	classes, libs := "BOOT-INF/classes/", []string{"BOOT-INF/lib/"}
	if c.kind == KindWar {
		classes, libs = "WEB-INF/classes/", []string{"WEB-INF/lib/", "WEB-INF/lib-provided/"}
	}
	if v := c.manifest["spring-boot-classes"]; v != "" {
		classes = v
	}
	if v := c.manifest["spring-boot-lib"]; v != "" && c.kind == KindJar {
		libs = []string{v}
	}
	own := root.below(classes)
	c.places, c.own = append(c.places, own), append(c.own, own)
	for _, lib := range append(libs, "lib/") { // lib/ is the layout of Spring Boot 1.3
		c.addLibraries(p, root, lib)
	}
}

// below is the part of a place under prefix.
func (pl *place) below(prefix string) *place {
	if pl.dir != "" {
		dir := joinDir(pl.dir, strings.TrimSuffix(prefix, "/"))
		return dirPlace(dir)
	}
	return &place{label: pl.label, id: pl.id + "!/" + prefix, prefix: prefix, open: pl.archive}
}

// addLibraries adds the jars of one folder of the archive.
func (c *classPath) addLibraries(p *Process, root *place, lib string) {
	if root.dir != "" {
		c.addJarsOf(p, joinDir(root.dir, strings.TrimSuffix(lib, "/")))
		return
	}
	for _, n := range root.names() {
		if rest, ok := strings.CutPrefix(n, lib); ok && len(c.places) <= maxClassPath && strings.HasSuffix(n, ".jar") && !strings.Contains(rest, "/") {
			c.places = append(c.places, c.nestedJar(root, n))
		}
	}
}

// addJarsOf adds the jars of a directory of the process, as "dir/*" does.
func (c *classPath) addJarsOf(p *Process, dir string) {
	entries, err := p.list(dir)
	if err != nil && !absent(err) {
		c.missing = append(c.missing, model.Unavailable{What: "class path directory " + dir, Why: reason(err)})
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); (ext == ".jar" || ext == ".JAR") && len(c.places) <= maxClassPath {
			c.places = append(c.places, c.fileJar(p, joinDir(dir, e.Name()), keepConfig))
		}
	}
}

// addClassPathApplication is java -cp … Main, also with a launcher of Spring
// Boot as Main in the directory of an exploded archive.
func (c *classPath) addClassPathApplication(p *Process, l *launch) {
	c.kind = KindClassPath
	for _, entry := range slices.Concat(l.modules, l.classPath) {
		if isLoader(l.main) && c.addExploded(p, l, entry) {
			continue
		}
		c.addEntry(p, entry)
	}
	// A class path of few entries may be a "pathing jar" that names the others.
	if len(c.places) <= 8 {
		for _, pl := range slices.Clone(c.places) {
			if pl.jarName() != "" {
				c.addManifestClassPath(p, pl)
			}
		}
	}
}

// addExploded adds an exploded archive, if the entry is one.
func (c *classPath) addExploded(p *Process, l *launch, entry string) bool {
	if entry == "" {
		entry = "."
	}
	root := dirPlace(entry)
	if strings.HasSuffix(entry, ".jar") || strings.HasSuffix(entry, ".war") {
		root = c.fileJar(p, entry, keepAll)
	}
	if !root.has(p, manifestName) {
		return false
	}
	c.readManifest(p, root)
	c.kind = KindExploded
	switch {
	case root.dir == "":
		c.kind, _ = bootArchive(c.manifest, root.names())
	case strings.HasSuffix(l.main, ".WarLauncher"):
		c.manifest["spring-boot-classes"] = "WEB-INF/classes/"
		c.addLibraries(p, root, "WEB-INF/lib/")
	}
	c.addArchive(p, l, root, l.main)
	return true
}

// addEntry adds one entry of -cp.
func (c *classPath) addEntry(p *Process, entry string) {
	switch {
	case entry == "":
		c.places = append(c.places, dirPlace("."))
	case entry == "*" || strings.HasSuffix(entry, "/*"):
		c.addJarsOf(p, strings.TrimSuffix(entry[:len(entry)-1]+".", "/."))
	case strings.HasSuffix(entry, ".jar") || strings.HasSuffix(entry, ".war") || strings.HasSuffix(entry, ".zip"):
		c.places = append(c.places, c.fileJar(p, entry, keepConfig))
	default:
		own := dirPlace(entry)
		c.places, c.own = append(c.places, own), append(c.own, own)
	}
}

// addManifestClassPath adds what a jar's Class-Path names: URLs relative to it.
func (c *classPath) addManifestClassPath(p *Process, jar *place) {
	data, err := jar.read(p, manifestName, maxManifest)
	if err != nil {
		return
	}
	base := path.Dir(jar.id)
	for _, ref := range strings.Fields(parseManifest(string(data))["class-path"]) {
		u, err := url.Parse(ref)
		if err != nil || (u.Scheme != "" && u.Scheme != "file") || len(c.places) >= maxClassPath {
			continue
		}
		target := u.Path
		if !path.IsAbs(target) {
			target = path.Join(base, target)
		}
		if strings.HasSuffix(u.Path, "/") {
			c.places = append(c.places, dirPlace(target))
			continue
		}
		c.places = append(c.places, c.fileJar(p, target, keepConfig))
	}
}

// addLoaderPath adds the directories and jars of PropertiesLauncher's
// loader.path, from -Dloader.path, LOADER_PATH or loader.properties.
func (c *classPath) addLoaderPath(p *Process, l *launch, root *place) {
	value, ok := systemProperties(p, l).raw("loader.path")
	if !ok && p.EnvKnown {
		value, ok = p.Env["LOADER_PATH"]
	}
	if !ok {
		value = c.loaderProperties(p, root)["loader.path"]
	}
	for entry := range strings.SplitSeq(value, ",") {
		entry = strings.TrimPrefix(strings.TrimSpace(entry), "file:")
		switch {
		case entry == "":
		case strings.HasSuffix(entry, ".jar") || strings.HasSuffix(entry, ".zip"):
			c.addEntry(p, entry)
		case strings.HasSuffix(entry, "/*"):
			c.addEntry(p, entry)
		default:
			c.places = append(c.places, dirPlace(strings.TrimSuffix(entry, "/")))
			c.addJarsOf(p, strings.TrimSuffix(entry, "/"))
		}
	}
}

// loaderProperties reads loader.properties, which configures PropertiesLauncher.
func (c *classPath) loaderProperties(p *Process, root *place) map[string]string {
	for _, pl := range []*place{root, root.below("BOOT-INF/classes/")} {
		data, err := pl.read(p, "loader.properties", maxLoaderFile)
		if err != nil {
			continue
		}
		docs, err := parseProperties(data, "", false, newQuota())
		if err == nil && len(docs) > 0 {
			return docs[0].values
		}
	}
	return nil
}

// find returns the first resource of that name on the class path.
func (c *classPath) find(p *Process, name string, limit int64) (data []byte, pl *place, err error) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	for _, pl := range c.places {
		data, err := pl.read(p, name, limit)
		switch {
		case err == nil:
			return data, pl, nil
		case absent(err), errors.Is(err, errZip):
			// A library that is no jar hides nothing that Java would find.
		case pl.err != nil:
			// The jar itself could not be opened; said once by load.
		default:
			return nil, pl, fmt.Errorf("%s in %s: %w", name, pl.label, err)
		}
	}
	return nil, nil, fmt.Errorf("classpath:/%s: %w", name, fs.ErrNotExist)
}

// parseManifest returns the main attributes of a META-INF/MANIFEST.MF: the
// lines up to the first empty one, where a line that begins with a space
// continues the one before (JAR File Specification). Names are lower-cased.
func parseManifest(text string) map[string]string {
	parts := map[string][]string{}
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if line[0] == ' ' {
			if last != "" {
				parts[last] = append(parts[last], line[1:])
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		last = strings.ToLower(strings.TrimSpace(name))
		parts[last] = []string{strings.TrimPrefix(value, " ")}
	}
	attrs := make(map[string]string, len(parts))
	for name, value := range parts {
		attrs[name] = strings.Join(value, "")
	}
	return attrs
}
