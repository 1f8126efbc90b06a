package springboot

import (
	"path"
	"strconv"
	"strings"
)

// version is a version number, its leading numbers.
type version [3]int

// parseVersion reads the leading numbers of "3.5.16" or "2.1.0.RELEASE".
func parseVersion(text string) version {
	var v version
	for i, part := range strings.SplitN(text, ".", 4) {
		n, err := strconv.Atoi(leadingDigits(part))
		if i > 2 || err != nil {
			break
		}
		v[i] = n
	}
	return v
}

func leadingDigits(s string) string {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return s[:i]
		}
	}
	return s
}

func (v version) known() bool { return v != version{} }

func (v version) atLeast(numbers ...int) bool {
	for i, n := range numbers {
		if v[i] != n {
			return v[i] > n
		}
	}
	return true
}

// plausible is a version that looks like one, or "": a manifest may hold
// anything.
func plausible(v string) string {
	if len(v) > 40 || !isDigit((v + "-")[0]) || strings.Trim(v, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_+") != "" {
		return ""
	}
	return v
}

// artifact is a jar's name and version, by its file name: the version begins
// with the first digit behind a dash.
func artifact(file string) (name, version string) {
	base := path.Base(file)
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".jar"), ".JAR")
	for i := 1; i+1 < len(base); i++ {
		if base[i] == '-' && isDigit(base[i+1]) {
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
