package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// page is a handler of a standalone Tomcat.
const page = `<% Thread.sleep(Long.parseLong(request.getParameter("ms"))); %>hello
`

// distribution is an unpacked Tomcat, from the cache after the first time.
func (b *bench) distribution(version string) string {
	home := filepath.Join(b.Cache, "apache-tomcat-"+version)
	if _, err := os.Stat(home); err == nil {
		return home
	}
	b.must(output(b.ctx, "", "mvn", "-q", "-B", "dependency:get", "-Dartifact=org.apache.tomcat:tomcat:"+version+":tar.gz", "-Dtransitive=false"))
	user, err := os.UserHomeDir()
	b.must(err)
	b.must(output(b.ctx, "", "tar", "-xzf", filepath.Join(user, ".m2/repository/org/apache/tomcat/tomcat", version, "tomcat-"+version+".tar.gz"), "-C", b.Cache))
	return home
}

// base is a CATALINA_BASE of its own, with connectors inside its Service.
func (b *bench) base(home, connectors string) string {
	base := filepath.Join(b.dir, "base")
	for _, dir := range []string{"conf", "temp", "logs", "work", "webapps/ROOT"} {
		b.must(os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	xml := connectors
	if !strings.Contains(xml, "<Server") {
		xml = fmt.Sprintf("<Server port=\"-1\"><Service name=\"Catalina\">\n%s\n<Engine name=\"Catalina\" defaultHost=\"localhost\"><Host name=\"localhost\" appBase=\"webapps\"/></Engine></Service></Server>\n", connectors)
	}
	b.must(os.WriteFile(filepath.Join(base, "conf/server.xml"), []byte(xml), 0o600))
	b.must(os.WriteFile(filepath.Join(base, "webapps/ROOT/slow.jsp"), []byte(page), 0o600))
	web, err := os.ReadFile(filepath.Join(home, "conf/web.xml"))
	b.must(err)
	b.must(os.WriteFile(filepath.Join(base, "conf/web.xml"), web, 0o600))
	return base
}

func (b *bench) catalina(home, base string, o options) *server {
	jars := filepath.Join(home, "bin/bootstrap.jar") + ":" + filepath.Join(home, "bin/tomcat-juli.jar")
	o.main = []string{"-cp", jars, "-Dcatalina.base=" + base, "-Dcatalina.home=" + home, "org.apache.catalina.startup.Bootstrap", "start"}
	return b.java(o)
}

// tomcat starts a standalone server of that version.
func (b *bench) tomcat(version string, o options, connectors string) *server {
	home := b.distribution(version)
	return b.catalina(home, b.base(home, connectors), o)
}
