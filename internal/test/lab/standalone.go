package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// slowPage is a handler of a standalone Tomcat.
const slowPage = `<% Thread.sleep(Long.parseLong(request.getParameter("ms"))); %>hello
`

// standalone starts a Tomcat of its own server.xml, warm.
func (b *bench) standalone(serverXML string) {
	base, home := filepath.Join(b.dir, "base"), b.kit.Tools.Home
	for _, dir := range []string{"conf", "temp", "logs", "work", "webapps/ROOT"} {
		b.must(os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	b.must(os.WriteFile(filepath.Join(base, "conf", "server.xml"), []byte(serverXML), 0o644))
	b.must(os.WriteFile(filepath.Join(base, "webapps", "ROOT", "slow.jsp"), []byte(slowPage), 0o644))
	web, err := os.ReadFile(filepath.Join(home, "conf", "web.xml"))
	b.must(err)
	b.must(os.WriteFile(filepath.Join(base, "conf", "web.xml"), web, 0o644))
	jars := filepath.Join(home, "bin", "bootstrap.jar") + ":" + filepath.Join(home, "bin", "tomcat-juli.jar")
	cmd := command(b.ctx, "java", "-XX:TieredStopAtLevel=1", "-Xmx160m", "-classpath", jars,
		"-Dcatalina.base="+base, "-Dcatalina.home="+home, "-Djava.io.tmpdir="+filepath.Join(base, "temp"),
		"org.apache.catalina.startup.Bootstrap", "start")
	log, err := os.Create(filepath.Join(b.dir, "catalina.log"))
	b.must(err)
	defer log.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = base, log, log
	b.must(cmd.Start())
	b.cleanup = append(b.cleanup, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	b.within(30*time.Second, "the standalone Tomcat serves its page", func() bool {
		o, err := demo.Burst(b.ctx, demo.BurstOptions{Address: "127.0.0.1:" + decimal(port), Clients: 1, Path: "/slow.jsp?ms=0"})
		return err == nil && o.Of(demo.OK) == 1
	})
}

// command prepares a program that ends with the lab.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = diesWithParent()
	return cmd
}
