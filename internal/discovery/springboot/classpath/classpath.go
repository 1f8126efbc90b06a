// Package classpath is where the application's class loader finds resources: directories,
// jars, and the parts and jars inside an executable jar. From it come the versions of
// Spring Boot and Tomcat, the kind of server, and the application's own code that may set
// limits behind the configuration's back.
package classpath

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// ClassPath is where the class loader finds resources, in its order.
type ClassPath struct {
	entries     []*Entry
	application []*Entry          // those that hold the application's own classes
	manifest    map[string]string // of the application's jar or exploded directory
	kind        Kind
	Missing     []model.Unavailable
	files       []*os.File // open jars
	archives    archives
	Over        bool // some jars were too much
}

// Close closes the jars that are open.
func (c *ClassPath) Close() {
	for _, f := range c.files {
		_ = f.Close()
	}
	c.files = nil
}

// New works out the class path of a command line.
func New(p *launch.Process, l *launch.Command) *ClassPath {
	c := &ClassPath{manifest: map[string]string{}, archives: newArchives()}
	if l.Jar != "" {
		c.addJarApplication(p, l)
	} else {
		c.addClassPathApplication(p, l)
	}
	if len(c.entries) > maxClassPath {
		c.entries = c.entries[:maxClassPath]
		c.Missing = append(c.Missing, model.Unavailable{What: "class path", Why: "its entries beyond the first 1,000 are not read"})
	}
	return c
}

// addJarApplication is java -jar: an executable jar or war of Spring Boot, or
// an ordinary one with a Class-Path (also what jarmode "extract" leaves).
func (c *ClassPath) addJarApplication(p *launch.Process, l *launch.Command) {
	jar := c.fileJar(p, l.Jar, keepAll)
	if _, err := jar.archive(); err != nil {
		c.Missing = append(c.Missing, model.Unavailable{
			What: "application jar " + l.Jar, Why: launch.Reason(err),
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
	c.entries, c.application = append(c.entries, jar), append(c.application, jar)
	c.addManifestClassPath(p, jar)
}

func (c *ClassPath) readManifest(p *launch.Process, pl *Entry) {
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

// addArchive adds the entries of an executable archive, packed or exploded. The
// archive's root is first: it is the parent class loader's.
func (c *ClassPath) addArchive(p *launch.Process, l *launch.Command, root *Entry, launcher string) {
	c.entries = append(c.entries, root)
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
	inside := root.below(classes)
	c.entries, c.application = append(c.entries, inside), append(c.application, inside)
	for _, lib := range append(libs, "lib/") { // lib/ is the layout of Spring Boot 1.3
		c.addLibraries(p, root, lib)
	}
}

// below is the part of an entry under prefix.
func (pl *Entry) below(prefix string) *Entry {
	if pl.Dir != "" {
		dir := JoinDir(pl.Dir, strings.TrimSuffix(prefix, "/"))
		return dirEntry(dir)
	}
	return &Entry{Label: pl.Label, ID: pl.ID + "!/" + prefix, prefix: prefix, open: pl.archive}
}

// addLibraries adds the jars of one folder of the archive.
func (c *ClassPath) addLibraries(p *launch.Process, root *Entry, lib string) {
	if root.Dir != "" {
		c.addJarsOf(p, JoinDir(root.Dir, strings.TrimSuffix(lib, "/")))
		return
	}
	for _, n := range root.names() {
		if rest, ok := strings.CutPrefix(n, lib); ok && len(c.entries) <= maxClassPath && strings.HasSuffix(n, ".jar") && !strings.Contains(rest, "/") {
			c.entries = append(c.entries, c.nestedJar(root, n))
		}
	}
}

// addJarsOf adds the jars of a directory of the process, as "dir/*" does.
func (c *ClassPath) addJarsOf(p *launch.Process, dir string) {
	entries, err := p.List(dir)
	if err != nil && !Absent(err) {
		c.Missing = append(c.Missing, model.Unavailable{What: "class path directory " + dir, Why: launch.Reason(err)})
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); (ext == ".jar" || ext == ".JAR") && len(c.entries) <= maxClassPath {
			c.entries = append(c.entries, c.fileJar(p, JoinDir(dir, e.Name()), keepConfig))
		}
	}
}

// addClassPathApplication is java -cp … Main, also with a launcher of Spring
// Boot as Main in the directory of an exploded archive.
func (c *ClassPath) addClassPathApplication(p *launch.Process, l *launch.Command) {
	c.kind = KindClassPath
	for _, entry := range slices.Concat(l.Modules, l.ClassPath) {
		if isLoader(l.Main) && c.addExploded(p, l, entry) {
			continue
		}
		c.addEntry(p, entry)
	}
	// A class path of few entries may be a "pathing jar" that names the others.
	if len(c.entries) <= 8 {
		for _, pl := range slices.Clone(c.entries) {
			if pl.jarName() != "" {
				c.addManifestClassPath(p, pl)
			}
		}
	}
}

// addExploded adds an exploded archive, if the entry is one.
func (c *ClassPath) addExploded(p *launch.Process, l *launch.Command, entry string) bool {
	if entry == "" {
		entry = "."
	}
	root := dirEntry(entry)
	if strings.HasSuffix(entry, ".jar") || strings.HasSuffix(entry, ".war") {
		root = c.fileJar(p, entry, keepAll)
	}
	if !root.has(p, manifestName) {
		return false
	}
	c.readManifest(p, root)
	c.kind = KindExploded
	switch {
	case root.Dir == "":
		c.kind, _ = bootArchive(c.manifest, root.names())
	case strings.HasSuffix(l.Main, ".WarLauncher"):
		c.manifest["spring-boot-classes"] = "WEB-INF/classes/"
		c.addLibraries(p, root, "WEB-INF/lib/")
	}
	c.addArchive(p, l, root, l.Main)
	return true
}

// addEntry adds one entry of -cp.
func (c *ClassPath) addEntry(p *launch.Process, entry string) {
	switch {
	case entry == "":
		c.entries = append(c.entries, dirEntry("."))
	case entry == "*" || strings.HasSuffix(entry, "/*"):
		c.addJarsOf(p, strings.TrimSuffix(entry[:len(entry)-1]+".", "/."))
	case strings.HasSuffix(entry, ".jar") || strings.HasSuffix(entry, ".war") || strings.HasSuffix(entry, ".zip"):
		c.entries = append(c.entries, c.fileJar(p, entry, keepConfig))
	default:
		added := dirEntry(entry)
		c.entries, c.application = append(c.entries, added), append(c.application, added)
	}
}

// addManifestClassPath adds what a jar's Class-Path names: URLs relative to it.
func (c *ClassPath) addManifestClassPath(p *launch.Process, jar *Entry) {
	data, err := jar.read(p, manifestName, maxManifest)
	if err != nil {
		return
	}
	base := path.Dir(jar.ID)
	for _, ref := range strings.Fields(parseManifest(string(data))["class-path"]) {
		u, err := url.Parse(ref)
		if err != nil || (u.Scheme != "" && u.Scheme != "file") || len(c.entries) >= maxClassPath {
			continue
		}
		target := u.Path
		if !path.IsAbs(target) {
			target = path.Join(base, target)
		}
		if strings.HasSuffix(u.Path, "/") {
			c.entries = append(c.entries, dirEntry(target))
			continue
		}
		c.entries = append(c.entries, c.fileJar(p, target, keepConfig))
	}
}

// addLoaderPath adds the directories and jars of PropertiesLauncher's
// loader.path, from -Dloader.path, LOADER_PATH or loader.properties.
func (c *ClassPath) addLoaderPath(p *launch.Process, l *launch.Command, root *Entry) {
	value, ok := launch.SystemProperties(p, l).Raw("loader.path")
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
			c.entries = append(c.entries, dirEntry(strings.TrimSuffix(entry, "/")))
			c.addJarsOf(p, strings.TrimSuffix(entry, "/"))
		}
	}
}

// loaderProperties reads loader.properties, which configures PropertiesLauncher.
func (c *ClassPath) loaderProperties(p *launch.Process, root *Entry) map[string]string {
	for _, pl := range []*Entry{root, root.below("BOOT-INF/classes/")} {
		data, err := pl.read(p, "loader.properties", maxLoaderFile)
		if err != nil {
			continue
		}
		docs, err := properties.Parse(data, "", false, properties.NewQuota())
		if err == nil && len(docs) > 0 {
			return docs[0].Values
		}
	}
	return nil
}

// Find returns the first resource of that name on the class path.
func (c *ClassPath) Find(p *launch.Process, name string, limit int64) (data []byte, pl *Entry, err error) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	for _, pl := range c.entries {
		data, err := pl.read(p, name, limit)
		switch {
		case err == nil:
			return data, pl, nil
		case Absent(err), errors.Is(err, errZip):
			// A library that is no jar hides nothing that Java would find.
		case pl.err != nil:
			// The jar itself could not be opened; said once by load.
		default:
			return nil, pl, fmt.Errorf("%s in %s: %w", name, pl.Label, err)
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
