package springboot

import "github.com/tcpdiag/tcpdiag/internal/model"

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
