package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	Short bool   // two kernels
	Only  string // regular expression over the guests' names
	Table bool   // boot nothing
	Run   string // regular expression over the guest package's tests
	Cache string
	Out   string
}

func main() {
	o := options{}
	flag.BoolVar(&o.Short, "short", false, "the oldest and the newest kernel only, without docs/kernels.md")
	flag.StringVar(&o.Only, "only", "", "only the guests whose name matches; the others' columns stay")
	flag.StringVar(&o.Run, "run", "", "of the tests only those of the guest package whose name matches, without docs/kernels.md")
	flag.BoolVar(&o.Table, "table", false, "boot nothing, write docs/kernels.md of the last logs")
	flag.StringVar(&o.Cache, "cache", ".cache/kernels", "folder for packages, images and logs")
	flag.StringVar(&o.Out, "out", "docs/kernels.md", "the table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// run boots one guest after the other, and says whether all tests passed.
func (o options) run(ctx context.Context) (bool, error) {
	only, err := regexp.Compile(o.Only)
	if err != nil {
		return false, err
	}
	l, err := newLab(ctx, o)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(l.work)
	if o.Table {
		return true, l.write()
	}
	if !o.Short && o.Run == "" {
		if err := l.measureHere(ctx); err != nil {
			return false, err
		}
	}
	ok, some := true, false
	for _, p := range plans(o.Short) {
		guest, err := l.prepare(ctx, p)
		if err != nil {
			return false, err
		}
		if !only.MatchString(guest.Name) {
			continue
		}
		if err := guest.run(ctx); err != nil {
			return false, err
		}
		r, err := readResult(guest.Name, guest.Log, p.Slow)
		if err != nil {
			return false, err
		}
		r.print(os.Stdout)
		ok, some = ok && r.ok(), true
	}
	if !some {
		return false, fmt.Errorf("no guest is named like %q", o.Only)
	}
	if o.Short || o.Run != "" {
		return ok, nil
	}
	return ok, l.write()
}

func (l *lab) write() error {
	text, err := l.document()
	if err != nil {
		return err
	}
	return os.WriteFile(l.o.Out, []byte(text), 0o644)
}

// document is made of the last logs of all kernels, those of earlier runs too.
func (l *lab) document() (string, error) {
	names, slow := []string{here}, []bool{false}
	for _, p := range plans(false) {
		name, err := l.name(p)
		if err != nil {
			return "", err
		}
		names, slow = append(names, name), append(slow, p.Slow)
	}
	var results []result
	for i, name := range names {
		r, err := readResult(name, l.log(name), slow[i])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", err
		}
		results = append(results, r)
	}
	return document(results), nil
}

// plan is a guest to come.
type plan struct {
	series
	Slow bool
	Run  []binary
}

// plans are the guests of a run: each kernel, and the newest once more on a
// slow machine.
func plans(short bool) []plan {
	var all []plan
	for _, s := range allSeries() {
		if short && !s.Short {
			continue
		}
		p := plan{series: s}
		for _, b := range binaries() {
			if (b.Short || !short) && (b.Arm || s.Arch != "arm64") {
				p.Run = append(p.Run, b)
			}
		}
		if s.JVM && !short {
			p.Run = append(p.Run, binary{Package: featureTest, Run: jvmTests, Minutes: 20})
		}
		all = append(all, p)
	}
	slow := binary{Package: featureTest, Run: slowTest, Minutes: 10}
	return append(all, plan{series: series{Arch: "amd64"}, Slow: true, Run: []binary{slow}})
}

// lab holds what the guests share.
type lab struct {
	o        options
	archive  *archive
	releases []release
	commit   string          // of this repository
	work     string          // a temporary folder
	disks    map[string]bool // architectures whose programs are built
}

func newLab(ctx context.Context, o options) (*lab, error) {
	cache, err := filepath.Abs(o.Cache)
	if err != nil {
		return nil, err
	}
	a, err := openArchive(ctx, filepath.Join(cache, "apt"))
	if err != nil {
		return nil, err
	}
	releases, err := a.releases(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(cache, "log"), 0o755); err != nil {
		return nil, err
	}
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=10").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	work, err := os.MkdirTemp(cache, "work-")
	return &lab{
		o: o, archive: a, releases: releases, commit: strings.TrimSpace(string(commit)),
		work: work, disks: map[string]bool{},
	}, err
}

// name is a guest's: its kernel's.
func (l *lab) name(p plan) (string, error) {
	r, err := pick(l.releases, p.series)
	if p.Slow {
		return r.Name + "-slow", err
	}
	return r.Name, err
}

// log is where a guest's console goes; those of a choice of tests apart.
func (l *lab) log(name string) string {
	if l.o.Run != "" || l.o.Short {
		name += "-part"
	}
	return filepath.Join(filepath.Dir(l.work), "log", name+".log")
}

// prepare makes a guest's kernel and initramfs.
func (l *lab) prepare(ctx context.Context, p plan) (guest, error) {
	r, err := pick(l.releases, p.series)
	if err != nil {
		return guest{}, err
	}
	g := guest{Limit: 40 * time.Minute, Boots: l.wanted(boots(p)), Commit: l.commit}
	if g.Name, err = l.name(p); err != nil {
		return guest{}, err
	}
	if matched, err := regexp.MatchString(l.o.Only, g.Name); err != nil || !matched {
		return g, err
	}
	unpacked, err := l.archive.unpack(ctx, r.Name, r.Arch, r.Packages...)
	if err != nil {
		return guest{}, err
	}
	if g.Kernel, err = kernelImage(unpacked); err != nil {
		return guest{}, err
	}
	if g.Disk, err = l.disk(ctx, p); err != nil {
		return guest{}, err
	}
	root := filepath.Join(l.work, g.Name)
	if err := system(ctx, l.archive, root, p.Arch); err != nil {
		return guest{}, err
	}
	if err := installModules(ctx, unpacked, root, r.Name); err != nil {
		return guest{}, err
	}
	for name, list := range map[string][]binary{oneSuite: l.narrowed(p.Run), twoSuite: {pairedBinary()}} {
		if err := os.WriteFile(filepath.Join(root, name), suiteFile(list), 0o644); err != nil {
			return guest{}, err
		}
	}
	g.Log = l.log(g.Name)
	g.Initrd = filepath.Join(l.work, "initrd")
	return g, pack(ctx, g.Initrd, root)
}

// The lists that a guest may run.
const oneSuite, twoSuite = "/suite", "/suite.two"

// boots are those of a plan: nearly all on one processor.
func boots(p plan) []boot {
	if p.Slow {
		return []boot{{slowMachine(p.Arch), oneSuite}}
	}
	return []boot{{machineFor(p.Arch), oneSuite}, {twoProcessors(p.Arch), twoSuite}}
}

// wanted leaves out the second boot where the flag wants none of its tests.
func (l *lab) wanted(all []boot) []boot {
	if paired, err := regexp.MatchString(l.o.Run, pairedTest); err != nil || !paired {
		return all[:1]
	}
	return all
}

// disk is the one with the programs of an architecture. The slow machine runs
// some of the first one's.
func (l *lab) disk(ctx context.Context, p plan) (string, error) {
	image := filepath.Join(l.work, p.Arch+".img")
	if l.disks[p.Arch] {
		return image, nil
	}
	root := filepath.Join(l.work, p.Arch)
	if err := programs(ctx, l.archive, root, p.Arch, l.narrowed(p.Run)); err != nil {
		return "", err
	}
	l.disks[p.Arch] = true
	return image, disk(ctx, image, root)
}

// narrowed is the list of binaries, or what the flag wants of it.
func (l *lab) narrowed(all []binary) []binary {
	if l.o.Run == "" {
		return all
	}
	return []binary{{Package: featureTest, Run: l.o.Run, Minutes: 10}}
}
