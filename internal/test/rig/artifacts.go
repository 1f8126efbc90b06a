package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Artifacts are the programs under test and around it.
type Artifacts struct {
	Jar      string // the sample server
	Keystore string // PKCS12, password KeystorePassword, for localhost
	Tcpdiag  string
}

// KeystorePassword opens Artifacts.Keystore. It guards nothing.
const KeystorePassword = "changeit"

// Artifacts are all of them, in the kit's folder, which other users must be able to
// read when tcpdiag is to run as one of them.
func (k *Kit) Artifacts() Artifacts {
	jar := k.Made(filepath.Join(k.Dir, "sample-server.jar"), func(to string) error {
		return output(k.ctx, "", "cp", k.Built("internal/test/lab/sample-server", "sample-server", "sample-server.jar"), to)
	})
	return Artifacts{Jar: jar, Keystore: k.KeystoreFile(), Tcpdiag: k.Tcpdiag()}
}

// failure is what a kit that belongs to no test panics with.
type failure struct{ error }

// Build makes the artifacts in a folder, outside of a test.
func Build(ctx context.Context, dir string) (a Artifacts, err error) {
	must := func(err error) {
		if err != nil {
			panic(failure{err})
		}
	}
	defer func() {
		if f, ok := recover().(failure); ok {
			err = fmt.Errorf("rig: %w", f.error)
		}
	}()
	return (&Kit{Dir: dir, ctx: ctx, must: must}).Artifacts(), nil
}

// ModuleRoot is the nearest folder above the working directory with a go.mod.
func ModuleRoot() (string, error) {
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

// output runs a program whose output matters only when it fails.
func output(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args[:min(2, len(args))], " "), err, out)
	}
	return nil
}
