package rig

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Nginx starts it with what its http section is to have.
func (c *Case) Nginx(servers string) {
	c.Helper()
	c.Needs("nginx")
	conf := c.Write("nginx.conf", fmt.Sprintf(`daemon off; error_log %[1]s/nginx.log; pid %[1]s/nginx.pid; user root;
events {}
http { access_log off; client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
%[2]s }
`, c.Dir, servers))
	c.Program("nginx", "-c", conf)
	c.Answers("127.0.0.1:" + firstPort(servers))
}

func firstPort(servers string) string {
	_, rest, _ := strings.Cut(servers, "listen ")
	return strings.FieldsFunc(rest, func(r rune) bool { return r < '0' || r > '9' })[0]
}

// Haproxy starts it on port 80 with a section of its configuration.
func (c *Case) Haproxy(listen string) {
	c.Helper()
	c.Needs("haproxy")
	conf := c.Write("haproxy.cfg", "global\n maxconn 1000\ndefaults\n timeout connect 5s\n timeout client 10m\n timeout server 10m\nlisten web\n "+listen+"\n")
	c.Program("haproxy", "-db", "-f", conf)
	c.Answers("127.0.0.1:80")
}

// Envoyed starts envoy on port 80, each of whose requests at a time goes to the server
// on a connection of its own.
func (c *Case) Envoyed() {
	c.Helper()
	conf := c.Write("envoy.yaml", envoyConfig)
	c.Program(c.Envoy(), "-c", conf, "--disable-hot-restart", "--concurrency", "1", "-l", "error")
	c.Answers("127.0.0.1:80")
}

// Forwarded has nftables send what comes to port 80 to the server's.
func (c *Case) Forwarded() {
	c.Helper()
	c.Needs("nft")
	c.Do("nft", "add table ip forward; add chain ip forward out { type nat hook output priority -100; }; add rule ip forward out tcp dport 80 redirect to :8080")
	c.AtEnd(func() { _ = output(c.Ctx, "", "nft", "delete table ip forward") })
}

// Jsvc runs Tomcat inside a program of its own that loads the JVM.
func (c *Case) Jsvc(connectors string) *Server {
	c.Helper()
	c.Needs("jsvc")
	home := c.Distribution(Tomcat10)
	base := c.Base(home, connectors)
	var jars []string
	for _, jar := range []string{"bootstrap.jar", "tomcat-juli.jar", "commons-daemon.jar"} {
		jars = append(jars, filepath.Join(home, "bin", jar))
	}
	log := filepath.Join(c.Dir, "server.log")
	cmd := c.Program("/usr/bin/jsvc", "-nodetach", "-home", "/usr/lib/jvm/java-17-openjdk-amd64", "-procname", "tomcat10", "-pidfile", filepath.Join(c.Dir, "jsvc.pid"), "-cp", strings.Join(jars, ":"), // it starts itself again
		"-outfile", log, "-errfile", log, "-Xmx160m", c.TruthFlag(), "-Djava.io.tmpdir="+c.Dir, "-Dcatalina.base="+base, "-Dcatalina.home="+home, "org.apache.catalina.startup.Bootstrap")
	return c.ServerOf(cmd.Process.Pid)
}

const envoyConfig = `static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 80}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: "/"}, route: {cluster: app, timeout: 90s}}]}]}
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
  clusters:
  - name: app
    connect_timeout: 5s
    type: STATIC
    load_assignment: {cluster_name: app, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8080}}}}]}]}
`
