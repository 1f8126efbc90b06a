package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Artifacts are the programs under test and around it.
type Artifacts struct {
	Jar      string // the sample server
	Keystore string // PKCS12, password KeystorePassword, for localhost
	Tcpdiag  string
}

// KeystorePassword opens Artifacts.Keystore. It guards nothing.
const KeystorePassword = "changeit"

// Build makes the artifacts. The sample server comes from the user's cache
// while its sources stay the same (Maven needs the network the first time).
// Everything goes to dir, which other users must be able to read when tcpdiag
// is to run as one of them.
func Build(ctx context.Context, dir string) (Artifacts, error) {
	root, err := moduleRoot()
	if err != nil {
		return Artifacts{}, fmt.Errorf("e2e: %w", err)
	}
	a := Artifacts{
		Jar:      filepath.Join(dir, "sample-server.jar"),
		Keystore: filepath.Join(dir, "localhost.p12"),
		Tcpdiag:  filepath.Join(dir, "tcpdiag"),
	}
	cached, err := sampleServer(ctx, filepath.Join(root, "internal", "test", "lab", "sample-server"))
	if err == nil {
		err = copyFile(cached, a.Jar)
	}
	if err != nil {
		return Artifacts{}, fmt.Errorf("e2e: sample server: %w", err)
	}
	if err := output(ctx, root, "go", "build", "-o", a.Tcpdiag, "./cmd/tcpdiag"); err != nil {
		return Artifacts{}, fmt.Errorf("e2e: %w", err)
	}
	err = output(ctx, dir, "keytool", "-genkeypair", "-alias", "tomcat", "-keyalg", "EC", "-validity", "30",
		"-storetype", "PKCS12", "-keystore", a.Keystore, "-storepass", KeystorePassword,
		"-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1")
	if err != nil {
		return Artifacts{}, fmt.Errorf("e2e: %w", err)
	}
	return a, nil
}

// moduleRoot is the nearest folder above the working directory with a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

// sampleServer returns the application's jar, built unless the cache has one
// of the very same sources.
func sampleServer(ctx context.Context, sources string) (string, error) {
	key, err := hashTree(sources)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // no HOME
	}
	cache = filepath.Join(cache, "tcpdiag")
	jar := filepath.Join(cache, "sample-server-"+key+".jar")
	if _, err := os.Stat(jar); err == nil {
		return jar, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	return jar, packageJar(ctx, sources, jar)
}

// packageJar builds in a copy, so that neither the checkout nor another build
// at the same time is disturbed, and moves the result into place at once.
func packageJar(ctx context.Context, sources, jar string) error {
	work, err := os.MkdirTemp(filepath.Dir(jar), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(filepath.Join(work, "src"), os.DirFS(filepath.Join(sources, "src"))); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(sources, "pom.xml"), filepath.Join(work, "pom.xml")); err != nil {
		return err
	}
	if err := output(ctx, work, "mvn", "-q", "-B", "package"); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, "target", "sample-server.jar"), jar)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// hashTree is over the names and contents of what the build reads.
func hashTree(dir string) (string, error) {
	sum := sha256.New()
	add := func(path string) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(sum, "%q\n", path[len(dir):])
		_, err = io.Copy(sum, f)
		return err
	}
	if err := add(filepath.Join(dir, "pom.xml")); err != nil {
		return "", err
	}
	err := filepath.WalkDir(filepath.Join(dir, "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return add(path)
	})
	return hex.EncodeToString(sum.Sum(nil)[:8]), err
}

// output runs a program whose output matters only when it fails.
func output(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, args[0], err, out)
	}
	return nil
}
