package classpath

import (
	"path"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/version"
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

// Libraries is the jars of the class path by their artifact's name.
func (c *ClassPath) Libraries() map[string]*Entry {
	libs := map[string]*Entry{}
	for _, pl := range c.entries {
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
func libraryVersion(p *launch.Process, libs map[string]*Entry, names ...string) string {
	for _, name := range names {
		pl, ok := libs[name]
		if !ok {
			continue
		}
		if _, v := artifact(pl.jarName()); version.Plausible(v) != "" {
			return v
		}
		if data, err := pl.read(p, manifestName, maxManifest); err == nil {
			if v := version.Plausible(parseManifest(string(data))["implementation-version"]); v != "" {
				return v
			}
		}
	}
	return ""
}

// BootVersion is Spring Boot's version.
func (c *ClassPath) BootVersion(p *launch.Process, libs map[string]*Entry) string {
	if v := version.Plausible(c.manifest["spring-boot-version"]); v != "" {
		return v
	}
	return libraryVersion(p, libs, "spring-boot")
}

// TomcatVersion is the embedded Tomcat's version.
func (c *ClassPath) TomcatVersion(p *launch.Process, libs map[string]*Entry) string {
	if v := libraryVersion(p, libs, "tomcat-embed-core"); v != "" {
		return v
	}
	// A jar into which everything was merged still has the file that Tomcat
	// reads its own version from.
	for _, pl := range c.entries[:min(1, len(c.entries))] {
		if data, err := pl.read(p, tomcatServerInfo, maxManifest); err == nil {
			docs, err := properties.Parse(data, tomcatServerInfo, false, properties.NewQuota())
			if err == nil && len(docs) > 0 {
				return version.Plausible(strings.TrimSuffix(docs[0].Values["server.number"], ".0"))
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

// Detect says how the application was started, and whether it is one of Spring Boot.
func (c *ClassPath) Detect(p *launch.Process, l *launch.Command) (Kind, bool) {
	if c.kind != KindClassPath || isLoader(l.Main) {
		return c.kind, c.kind != KindNone
	}
	// A Tomcat of its own may have Spring Boot's jars somewhere; its settings
	// are not Spring's.
	if strings.HasPrefix(l.Main, "org.apache.catalina.startup.") {
		return KindNone, false
	}
	if c.hasSpringBoot(p, c.Libraries()) {
		return c.kind, true
	}
	return KindNone, false
}

// WebServer is the embedded server: by its library, of which Spring Boot takes
// Tomcat's when several are there. It is not known where some libraries may be
// that could not be listed.
func (c *ClassPath) WebServer(p *launch.Process, libs map[string]*Entry, complete bool) string {
	for _, s := range model.Servers() {
		for _, jar := range s.Jars {
			if _, ok := libs[jar]; ok && jar != "" {
				return s.Name
			}
		}
	}
	if complete && len(c.Missing) == 0 && c.hasSpringBoot(p, libs) {
		return model.ServerOther().Name
	}
	return ""
}

// hasSpringBoot says that Spring Boot is among the libraries, or merged into the
// application's jar.
func (c *ClassPath) hasSpringBoot(p *launch.Process, libs map[string]*Entry) bool {
	if _, ok := libs["spring-boot"]; ok {
		return true
	}
	return len(c.entries) > 0 && c.entries[0].Dir == "" && c.entries[0].has(p, classSpringApplication)
}
