package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// worldVariable informs the program that it has its namespaces.
const worldVariable = "TCPDIAG_BENCH_WORLD"

func inWorld() bool { return os.Getenv(worldVariable) != "" }

// build makes the programs that were not given, and says early what is missing.
func build(ctx context.Context, dir string, o *options) error {
	needed := []string{"ss"}
	if o.Tomcat > 0 {
		needed = append(needed, "java", "wrk")
	}
	for _, name := range needed {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w (java and wrk are not needed with -tomcat-turns 0)", err)
		}
	}
	if o.Tcpdiag == "" {
		o.Tcpdiag = filepath.Join(dir, "tcpdiag")
		out, err := exec.CommandContext(ctx, "go", "build", "-o", o.Tcpdiag, "github.com/tcpdiag/tcpdiag/cmd/tcpdiag").CombinedOutput()
		if err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
		if err := written(o.Tcpdiag); err != nil {
			return err
		}
	}
	if o.Tomcat == 0 || o.Jar != "" {
		return nil
	}
	made, err := rig.Build(ctx, dir)
	o.Jar = made.Jar
	return err
}

// written replaces a program by a copy of it. What the linker has just made lies in the
// page cache in huge pages, and Linux 6.18 maps such a page as a whole at a page fault
// (filemap_map_pages): nearly all of the file is resident then. The file of a package is
// written by blocks, and is mapped by 64 KiB.
func written(program string) error {
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(program+".copy", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), os.Rename(program+".copy", program))
}

// enterWorld runs the program again with namespaces of its own.
func enterWorld(ctx context.Context, o options) error {
	tcpdiag, err := filepath.Abs(o.Tcpdiag)
	if err != nil {
		return err
	}
	if o.Before != "" {
		if o.Before, err = filepath.Abs(o.Before); err != nil {
			return err
		}
	}
	return rig.World(ctx, worldVariable,
		"-sockets", strconv.Itoa(o.Sockets), "-processes", strconv.Itoa(o.Holders), "-descriptors", strconv.Itoa(o.Files),
		"-turn", o.Turn.String(), "-turns", strconv.Itoa(o.Turns), "-tomcat-turns", strconv.Itoa(o.Tomcat), "-tap", strconv.Itoa(o.Tap),
		"-connections="+strconv.FormatBool(o.Hurry), "-before", o.Before,
		"-out", o.Out, "-tcpdiag", tcpdiag, "-jar", o.Jar, "-deadline", o.Deadline.String())
}

// furnish makes the fresh namespaces usable.
func furnish() error {
	if err := rig.Furnish(); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"net/ipv4/ip_local_port_range": "10000 65535", // above all the listeners,
		"net/core/somaxconn":           "65535",
	} {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// machine describes what the numbers were taken on.
func machine() (rows [][2]string) {
	first := func(path, prefix string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return "unknown"
		}
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, prefix) {
				_, value, _ := strings.Cut(line, ":")
				return strings.TrimSpace(value)
			}
		}
		return strings.TrimSpace(string(b))
	}
	version := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput() //nolint:noctx // answers at once
		if err != nil && len(out) == 0 {
			return "not found"
		}
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	return [][2]string{
		{"processors", strconv.Itoa(runtime.NumCPU()) + " × " + first("/proc/cpuinfo", "model name")},
		{"memory", first("/proc/meminfo", "MemTotal")},
		{"kernel", first("/proc/sys/kernel/osrelease", "\x00")},
		{"Go", version("go", "version")},
		{"ss", version("ss", "-V")},
		{"Java", version("java", "-version")},
		{"wrk", version("wrk", "-v")},
	}
}
