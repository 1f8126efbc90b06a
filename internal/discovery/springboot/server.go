package springboot

// otherServer is a web server that Spring Boot has no starter for, or none.
const otherServer = "other"

// webServer is the embedded server: by its library, of which Spring Boot takes
// Tomcat's when several are there. It is not known where some libraries may be
// that could not be listed.
func (c *classPath) webServer(p *Process, libs map[string]*place, complete bool) string {
	for _, s := range []struct{ jar, name string }{
		{"tomcat-embed-core", "tomcat"},
		{"jetty-server", "jetty"},
		{"undertow-core", "undertow"},
		{"reactor-netty-http", "netty"},
		{"reactor-netty", "netty"}, // the starter's until Spring Boot 2.3
	} {
		if _, ok := libs[s.jar]; ok {
			return s.name
		}
	}
	if complete && len(c.missing) == 0 && c.hasSpringBoot(p, libs) {
		return otherServer
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
