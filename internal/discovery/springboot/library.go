package springboot

import (
	"path"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// artifact is a jar's name and version, by its file name: the version begins
// with the first digit behind a dash.
func artifact(file string) (name, version string) {
	base := path.Base(file)
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".jar"), ".JAR")
	for i := 1; i+1 < len(base); i++ {
		if base[i] == '-' && strings.IndexByte("0123456789", base[i+1]) >= 0 {
			return base[:i], base[i+1:]
		}
	}
	return base, ""
}

// libraries is the jars of the class path by their artifact's name.
func (c *classPath) libraries() map[string]*place {
	libs := map[string]*place{}
	for _, pl := range c.places {
		if file := pl.jarName(); file != "" {
			name, _ := artifact(file)
			if _, first := libs[name]; !first {
				libs[name] = pl
			}
		}
	}
	return libs
}

// libraryVersion is a library's version: its file's name, or its manifest.
func libraryVersion(p *Process, libs map[string]*place, names ...string) string {
	for _, name := range names {
		pl, ok := libs[name]
		if !ok {
			continue
		}
		if _, v := artifact(pl.jarName()); plausible(v) != "" {
			return v
		}
		if data, err := pl.read(p, manifestName, maxManifest); err == nil {
			if v := plausible(parseManifest(string(data))["implementation-version"]); v != "" {
				return v
			}
		}
	}
	return ""
}

// bootVersion is Spring Boot's version.
func (c *classPath) bootVersion(p *Process, libs map[string]*place) string {
	if v := plausible(c.manifest["spring-boot-version"]); v != "" {
		return v
	}
	return libraryVersion(p, libs, "spring-boot")
}

// tomcatVersion is the embedded Tomcat's version.
func (c *classPath) tomcatVersion(p *Process, libs map[string]*place) string {
	if v := libraryVersion(p, libs, "tomcat-embed-core"); v != "" {
		return v
	}
	// A jar into which everything was merged still has the file that Tomcat
	// reads its own version from.
	for _, pl := range c.places[:min(1, len(c.places))] {
		if data, err := pl.read(p, tomcatServerInfo, maxManifest); err == nil {
			docs, err := parseProperties(data, tomcatServerInfo, false, newQuota())
			if err == nil && len(docs) > 0 {
				return plausible(strings.TrimSuffix(docs[0].values["server.number"], ".0"))
			}
		}
	}
	return ""
}

// Kind is how a Spring Boot application was started.
type Kind string

// The kinds.
const (
	KindNone      Kind = ""
	KindJar       Kind = "jar"       // java -jar of an executable jar
	KindWar       Kind = "war"       // java -jar of an executable war
	KindExploded  Kind = "exploded"  // a launcher class in the directory of an unpacked archive
	KindClassPath Kind = "classpath" // java -cp … Main, or a jar with a Class-Path
)

func (c *classPath) detect(p *Process, l *launch) (Kind, bool) {
	if c.kind != KindClassPath || isLoader(l.main) {
		return c.kind, c.kind != KindNone
	}
	// A Tomcat of its own may have Spring Boot's jars somewhere; its settings
	// are not Spring's.
	if strings.HasPrefix(l.main, "org.apache.catalina.startup.") {
		return KindNone, false
	}
	if c.hasSpringBoot(p, c.libraries()) {
		return c.kind, true
	}
	return KindNone, false
}

// webServer is the embedded server: by its library, of which Spring Boot takes
// Tomcat's when several are there. It is not known where some libraries may be
// that could not be listed.
func (c *classPath) webServer(p *Process, libs map[string]*place, complete bool) string {
	for _, s := range model.Servers() {
		for _, jar := range s.Jars {
			if _, ok := libs[jar]; ok && jar != "" {
				return s.Name
			}
		}
	}
	if complete && len(c.missing) == 0 && c.hasSpringBoot(p, libs) {
		return model.ServerOther().Name
	}
	return ""
}

// hasSpringBoot says that Spring Boot is among the libraries, or merged into the
// application's jar.
func (c *classPath) hasSpringBoot(p *Process, libs map[string]*place) bool {
	if _, ok := libs["spring-boot"]; ok {
		return true
	}
	return len(c.places) > 0 && c.places[0].dir == "" && c.places[0].has(p, classSpringApplication)
}
