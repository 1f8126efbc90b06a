package attacks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// inUserNamespace makes the attacker root of a user namespace of its own, with mounts
// of its own.
func inUserNamespace(script string) []string {
	return []string{"unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-c", script + ` exec "$@"`, "sh"}
}

// changing are processes that are not what they seem, or not for long.
func changing() map[string]attack {
	flips := found(part{From: hostilePort, To: hostilePort + 1, Threads: []string{"http-nio-18080-e"}, Flip: "--spring.config.import=file:/"}, "--spring.config.import=file:/444444")
	root := boot("application.properties", "").with(func(t *testing.T, _ string) []string {
		return application("--spring.config.import=file:" + rootOnly(t, "secret.properties"))
	}).saying(`config file file:/tmp/.*/secret.properties: permission denied`)
	root.behind = inUserNamespace("")
	bound := tomcat("").with(func(*testing.T, string) []string { return append(catalina(), "-config", "conf/environ") }).
		saying(`conf/environ: "proc": not a file system that is read`)
	bound.behind = inUserNamespace("mount --bind /proc/$$ conf &&")
	magic := tomcat("").with(func(t *testing.T, dir string) []string {
		require.NoError(t, os.Symlink("/proc/1/root", filepath.Join(dir, "up")))
		return append(catalina(), "-config", "up"+rootOnly(t, "server.xml"))
	}).saying(`server.xml: "proc": not a file system that is read`)
	over := tomcat("").with(func(*testing.T, string) []string { return append(catalina(), "-config", "conf/server.xml") }).finding(42)
	over.files["lower/server.xml"] = server(42)
	over.behind = inUserNamespace("mkdir -p /tmp/x.$$ && mount -t tmpfs x /tmp/x.$$ && mkdir /tmp/x.$$/u /tmp/x.$$/w && mount -t overlay x -o lowerdir=$PWD/lower,upperdir=/tmp/x.$$/u,workdir=/tmp/x.$$/w conf &&")
	return map[string]attack{
		"its command line changes":   flips,
		"root of a user namespace":   root,
		"proc bound in its folder":   bound,
		"a magic link in its folder": magic,
		"an overlay of its own":      over,
	}
}
