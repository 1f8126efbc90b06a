package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// tools are the load generators of the experiments' authors.
type tools struct {
	K6      string
	Locust  string
	Scripts string // the folder with k6/ and locust/
	Home    string // of a standalone Tomcat
}

// Their versions.
const (
	k6Version     = "v1.8.1"
	locustVersion = "2.47.0"
	tomcatVersion = "10.1.59"
)

// fetchTools gets those that the chosen scenarios need into the user's cache,
// once.
func fetchTools(ctx context.Context, chosen []scenario) (t tools, err error) {
	if t.Scripts, err = filepath.Abs(filepath.Join("internal", "test", "lab")); err != nil {
		return t, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // no HOME
	}
	cache = filepath.Join(cache, "tcpdiag")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return t, err
	}
	if slices.ContainsFunc(chosen, func(s scenario) bool { return s.needsK6 }) {
		if t.K6, err = fetchK6(ctx, cache); err != nil {
			return t, err
		}
	}
	if slices.ContainsFunc(chosen, func(s scenario) bool { return s.locust }) {
		if t.Locust, err = fetchLocust(ctx, cache); err != nil {
			return t, err
		}
	}
	if slices.ContainsFunc(chosen, func(s scenario) bool { return s.standalone }) {
		t.Home, err = fetchTomcat(ctx, cache)
	}
	return t, err
}

func fetchK6(ctx context.Context, cache string) (string, error) {
	path := filepath.Join(cache, "k6-"+k6Version)
	return path, once(path, func(work string) error {
		cmd := exec.CommandContext(ctx, "go", "install", "go.k6.io/k6@"+k6Version)
		cmd.Env = append(os.Environ(), "GOBIN="+work, "GOFLAGS=")
		if err := quiet(cmd); err != nil {
			return err
		}
		return os.Rename(filepath.Join(work, "k6"), path)
	})
}

func fetchLocust(ctx context.Context, cache string) (string, error) {
	dir := filepath.Join(cache, "locust-"+locustVersion)
	// A virtual environment holds its own path: it is made in place, and the
	// program in it appears last.
	path := filepath.Join(dir, "bin", "locust")
	return path, once(path, func(string) error {
		if err := quiet(exec.CommandContext(ctx, "python3", "-m", "venv", dir)); err != nil {
			return err
		}
		return quiet(exec.CommandContext(ctx, filepath.Join(dir, "bin", "pip"), "install", "-q", "locust=="+locustVersion))
	})
}

// fetchTomcat unpacks a distribution that Maven fetches.
func fetchTomcat(ctx context.Context, cache string) (string, error) {
	path := filepath.Join(cache, "lab-tomcat-"+tomcatVersion)
	return path, once(path, func(work string) error {
		const maven = "org.apache.tomcat:tomcat:" + tomcatVersion + ":tar.gz"
		if err := quiet(exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy",
			"-Dartifact="+maven, "-DoutputDirectory="+work)); err != nil {
			return err
		}
		if err := quiet(exec.CommandContext(ctx, "tar", "-xzf", filepath.Join(work, "tomcat-"+tomcatVersion+".tar.gz"), "-C", work)); err != nil {
			return err
		}
		return os.Rename(filepath.Join(work, "apache-tomcat-"+tomcatVersion), path)
	})
}

// once makes what is not there yet; make has a folder for its work.
func once(path string, makeIt func(work string) error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	fmt.Printf("fetching %s (once) …\n", filepath.Base(path))
	work, err := os.MkdirTemp(filepath.Dir(filepath.Clean(path)), "fetch-")
	if os.IsNotExist(err) { // the folder itself is to be made
		work, err = os.MkdirTemp("", "fetch-")
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	return makeIt(work)
}

// quiet runs a program whose output matters only when it fails.
func quiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, out)
	}
	return nil
}
