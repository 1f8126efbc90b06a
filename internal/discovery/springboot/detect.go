package springboot

import "strings"

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
