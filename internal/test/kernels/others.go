package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// others puts programs of this and of other releases on the disk: two releases'
// ss, each with its own libraries, systemd's loader of modules, and where this
// machine has them Java and a Tomcat.
func others(ctx context.Context, a *archive, root string) error {
	for name, packages := range socketStatistics() {
		from, err := a.unpack(ctx, name, "amd64", packages...)
		if err != nil {
			return err
		}
		if err := install(from, filepath.Join(root, "opt", name), "ss"); err != nil {
			return err
		}
	}
	systemd := filepath.Join(root, "opt", "systemd")
	if err := install("/", systemd, "systemd-modules-load"); err != nil {
		return err
	}
	return java(root)
}

// deployed puts what is shipped besides the program on the disk: what its rights
// are in a cluster and as a unit, and what loads tcp_diag.
func deployed(root string) error {
	dir := filepath.Join(root, "opt", "deploy")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for from, to := range map[string]string{
		"kubernetes/daemonset/tcpdiag.yaml": "daemonset.yaml", "config/tcpdiag.yml": "tcpdiag.yml",
		"systemd/tcpdiag.service": "tcpdiag.service", "systemd/all-namespaces.conf": "all-namespaces.conf",
		"systemd/tcpdiag.modules": "tcpdiag.modules",
	} {
		if err := copyFile(filepath.Join("deploy", from), filepath.Join(dir, to)); err != nil {
			return err
		}
	}
	return nil
}

// socketStatistics are the packages of the oldest and of a new ss, by the folder
// they go to.
func socketStatistics() map[string][]string {
	of := func(suite string, names ...string) []string {
		for i := range names {
			names[i] += "/" + suite
		}
		return names
	}
	return map[string][]string{
		"ss-old": of("bullseye", "iproute2", "libc6", "libbsd0", "libmd0", "libelf1", "libmnl0", "libcap2", "libselinux1", "libpcre2-8-0", "zlib1g", "libbpf0"),
		"ss-new": of("trixie", "iproute2", "libc6", "libelf1t64", "libmnl0", "libcap2", "libselinux1", "libpcre2-8-0", "zlib1g", "libzstd1",
			"libbpf1", "libtirpc3t64", "libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libcom-err2", "libkeyutils1"),
	}
}

// folders are where a Debian root has programs and libraries.
func folders() []string {
	return []string{
		"usr/bin", "bin", "usr/lib/systemd", "lib/systemd", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu",
		"usr/lib/x86_64-linux-gnu/systemd", "lib/x86_64-linux-gnu/systemd", "usr/lib64", "lib64",
	}
}

// install copies programs from a Debian root into a folder, with the libraries
// they are linked with and the loader: ld-linux-x86-64.so.2 --library-path FOLDER
// FOLDER/PROGRAM runs one whatever else the guest has.
func install(from, to string, names ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	todo := append([]string{"ld-linux-x86-64.so.2"}, names...)
	for done := map[string]bool{}; len(todo) > 0; todo = todo[1:] {
		name := todo[0]
		if done[name] {
			continue
		}
		done[name] = true
		path, err := find(from, name)
		if err != nil {
			return err
		}
		if err := copyFile(path, filepath.Join(to, name)); err != nil {
			return err
		}
		needs, err := linkedWith(path)
		if err != nil {
			return err
		}
		todo = append(todo, needs...)
	}
	return nil
}

// find looks for a program or library. Links of an unpacked package that lead
// through the root lead to this machine's: they are not followed there.
func find(root, name string) (string, error) {
	for _, folder := range folders() {
		path := filepath.Join(root, folder, name)
		if target, err := os.Readlink(path); err == nil && filepath.IsAbs(target) {
			path = filepath.Join(root, target)
		}
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w in %s", name, fs.ErrNotExist, root)
}

func linkedWith(path string) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer file.Close()
	return file.ImportedLibraries()
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// java copies this machine's Java and the Tomcat that other tests have fetched,
// and what Java is linked with to where its loader looks. Without them the tests
// that need them say that they are skipped.
func java(root string) error {
	program, err := exec.LookPath("java")
	if err != nil {
		return nil
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	tomcat := filepath.Join(cache, "tcpdiag", "apache-tomcat-9.0.117")
	if _, err := os.Stat(tomcat); err != nil {
		return nil
	}
	if err := copyTree(tomcat, filepath.Join(root, "opt/tomcat")); err != nil {
		return err
	}
	home := filepath.Dir(filepath.Dir(program))
	for _, part := range []string{"bin/java", "conf", "lib"} {
		if err := copyTree(filepath.Join(home, part), filepath.Join(root, "opt/java", part)); err != nil {
			return err
		}
	}
	return install("/", filepath.Join(root, "lib64"), "libz.so.1", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6")
}

// copyTree copies files and what links lead to, but for what only compilers need.
func copyTree(from, to string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a link to what is not installed
		} else if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if filepath.Base(path) == "ct.sym" || filepath.Base(path) == "src.zip" {
			return nil
		}
		if info.IsDir() && d.Type()&fs.ModeSymlink != 0 {
			return copyTree(path+"/.", target)
		}
		if info.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return copyFile(path, target)
	})
	return err
}
