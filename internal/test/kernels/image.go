package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed init.sh
var initScript []byte

// system makes what each guest unpacks into its memory: busybox and what a Linux
// system has.
func system(ctx context.Context, a *archive, root, arch string) error {
	busybox, err := a.unpack(ctx, "busybox-"+arch, arch, "busybox-static")
	if err != nil {
		return err
	}
	for _, dir := range []string{"bin", "sbin", "proc", "sys", "dev", "tmp", "etc", "run", "root", "var/tmp", "programs"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(filepath.Join(busybox, "usr/bin/busybox"))
	if os.IsNotExist(err) { // suites before trixie
		program, err = os.ReadFile(filepath.Join(busybox, "bin/busybox"))
	}
	if err != nil {
		return err
	}
	for name, file := range map[string]struct {
		content []byte
		mode    os.FileMode
	}{
		"bin/busybox":  {program, 0o755},
		"init":         {initScript, 0o755},
		"etc/hostname": {[]byte("guest\n"), 0o644},
		"etc/hosts":    {[]byte("127.0.0.1 localhost guest\n"), 0o644},
		"etc/passwd":   {[]byte("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"), 0o644},
		"etc/group":    {[]byte("root:x:0:\nnogroup:x:65534:\n"), 0o644},
	} {
		if err := os.WriteFile(filepath.Join(root, name), file.content, file.mode); err != nil {
			return err
		}
	}
	if err := os.Symlink("/bin/busybox", filepath.Join(root, "sbin/modprobe")); err != nil {
		return err
	}
	for name, target := range map[string]string{"t": "t", "lib64": "lib64", "bin/tcpdiag": "tcpdiag", "opt": "opt"} {
		if err := os.Symlink(filepath.Join("/programs", target), filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// programs makes the disk that all guests of an architecture share: tcpdiag, the
// test binaries, and other programs with their libraries.
func programs(ctx context.Context, a *archive, root, arch string, wanted []binary) error {
	if err := compile(ctx, arch, "build", "-o", filepath.Join(root, "tcpdiag"), "./cmd/tcpdiag"); err != nil {
		return err
	}
	for _, b := range wanted {
		if _, err := os.Stat(filepath.Join(root, "t", b.name())); err == nil {
			continue // it is listed twice
		}
		if err := compileTests(ctx, root, arch, b); err != nil {
			return err
		}
	}
	if err := deployed(root); err != nil || arch != "amd64" {
		return err
	}
	return others(ctx, a, root)
}

func compileTests(ctx context.Context, root, arch string, b binary) error {
	dir := filepath.Join(root, "t", b.name())
	if err := compile(ctx, arch, "test", "-c", "-o", filepath.Join(dir, "test"), b.Package); err != nil {
		return err
	}
	source := filepath.Join(strings.TrimPrefix(b.Package, "github.com/tcpdiag/tcpdiag/"), "testdata")
	if _, err := os.Stat(source); err != nil {
		return nil // it has none
	}
	return os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS(source))
}

func compile(ctx context.Context, arch, verb string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-trimpath", "-ldflags=-s -w"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s %s: %w", verb, strings.Join(args, " "), err)
	}
	return nil
}

// suiteFile lists what the guest runs, in the form that init.sh reads.
func suiteFile(wanted []binary) []byte {
	var text strings.Builder
	for _, b := range wanted {
		fmt.Fprintf(&text, "%s %d %s", b.name(), b.Minutes, cmp.Or(b.Env, "-"))
		if b.Run != "" {
			fmt.Fprintf(&text, " -test.run %s", b.Run)
		}
		if b.Skip != "" {
			fmt.Fprintf(&text, " -test.skip %s", b.Skip)
		}
		if b.Bench != "" {
			fmt.Fprintf(&text, " -test.bench %s -test.benchtime %s", b.Bench, benchTime)
		}
		text.WriteString("\n")
	}
	return []byte(text.String())
}

// pack makes an initramfs of some folders; a later one's files win.
func pack(ctx context.Context, image string, folders ...string) error {
	out, err := os.Create(image)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, folder := range folders { // the kernel takes archives one after the other
		cmd := exec.CommandContext(ctx, "sh", "-c", "find . | cpio -o -H newc --quiet")
		cmd.Dir, cmd.Stdout, cmd.Stderr = folder, out, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("cpio of %s: %w", folder, err)
		}
	}
	return out.Close()
}

// disk makes an ext4 of a folder, which the kernels have built in.
func disk(ctx context.Context, image, folder string) error {
	const size = "1500M" // sparse
	out, err := exec.CommandContext(ctx, "/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", folder, image, size).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mke2fs of %s: %w: %s", folder, err, out)
	}
	return nil
}
