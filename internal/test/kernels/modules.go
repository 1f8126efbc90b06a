package main

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// installModules puts the wanted modules and what they depend on into a guest's
// root, uncompressed, with the lists by which modprobe finds them: the kernel
// itself calls it for a request that needs tcp_diag.
func installModules(ctx context.Context, unpacked, root, release string) error {
	files, err := moduleFiles(unpacked)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "lib/modules", release)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	todo := modules()
	for done := map[string]bool{}; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if done[name] {
			continue
		}
		done[name] = true
		if files[name] == "" {
			continue // built in
		}
		image, err := uncompressed(ctx, files[name])
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".ko"), image, 0o644); err != nil {
			return err
		}
		needs, err := dependencies(image)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		todo = append(todo, needs...)
	}
	out, err := exec.CommandContext(ctx, "/sbin/depmod", "-b", root, release).CombinedOutput()
	if err != nil {
		return fmt.Errorf("depmod: %w: %s", err, out)
	}
	return nil
}

// moduleFiles finds a kernel's modules by name.
func moduleFiles(unpacked string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(unpacked, func(path string, d fs.DirEntry, err error) error {
		if name, _, ok := strings.Cut(filepath.Base(path), ".ko"); ok && err == nil && !d.IsDir() {
			files[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	return files, err
}

func uncompressed(ctx context.Context, path string) ([]byte, error) {
	if filepath.Ext(path) == ".xz" {
		return exec.CommandContext(ctx, "xz", "-dc", path).Output()
	}
	return os.ReadFile(path)
}

// dependencies reads "depends=inet_diag,…" of a module's .modinfo section.
func dependencies(image []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for entry := range bytes.SplitSeq(info, []byte{0}) {
		if list, ok := bytes.CutPrefix(entry, []byte("depends=")); ok && len(list) > 0 {
			return strings.Split(strings.ReplaceAll(string(list), "-", "_"), ","), nil
		}
	}
	return nil, nil
}
