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
	Boots string // regular expression over the boots' names
	Run   string // regular expression over the guest package's tests
	Cache string
	Out   string

	AtOnce  int // guests
	Clients int // across each impaired network, or short ones, and nothing else; 0: all else
}

func main() {
	o := options{}
	flag.BoolVar(&o.Short, "short", false, "the oldest and the newest kernel only, without docs/results/kernels.md")
	flag.StringVar(&o.Only, "only", "", "only the guests whose name matches; the others' columns stay")
	flag.StringVar(&o.Boots, "boots", "", "only the boots whose name matches (features, two, networks, accounts, million, java, slow); what others have logged stays")
	flag.StringVar(&o.Run, "run", "", "of the tests only those of the guest package whose name matches, without docs/results/kernels.md")
	flag.IntVar(&o.Clients, "clients", 0, "nothing but the clients across networks that delay and lose packets, as many on each, or with -boots million so many short ones, without docs/results/kernels.md")
	flag.IntVar(&o.AtOnce, "at-once", 1, "guests that run at the same time, each on a processor of its own")
	flag.BoolVar(&o.Table, "table", false, "boot nothing, write docs/results/kernels.md of the last logs")
	flag.StringVar(&o.Cache, "cache", ".cache/kernels", "folder for packages, images and logs")
	flag.StringVar(&o.Out, "out", "docs/results/kernels.md", "the table")
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

// run boots the guests, and says whether all tests passed.
func (o options) run(ctx context.Context) (bool, error) {
	begun := time.Now()
	only, err := regexp.Compile(o.Only)
	if err != nil {
		return false, err
	}
	if _, err := regexp.Compile(o.Boots); err != nil {
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
	if o.whole() {
		if err := l.measureHere(ctx); err != nil {
			return false, err
		}
	}
	wanted, err := l.wanted(only)
	if err != nil {
		return false, err
	}
	ok, err := l.boot(ctx, wanted)
	if err != nil {
		return false, err
	}
	if err := l.record(begun, ok); err != nil || !o.whole() {
		return ok, err
	}
	return ok, l.write()
}

// whole reports whether the guests run what the table shows.
func (o options) whole() bool { return !o.Short && o.Run == "" && o.Clients == 0 }

func (l *lab) write() error {
	text, err := l.document()
	if err != nil {
		return err
	}
	return os.WriteFile(l.o.Out, []byte(text), 0o644)
}

// document is made of the last logs of all kernels' boots, those of earlier runs
// too.
func (l *lab) document() (string, error) {
	var results []result
	add := func(name string, slow bool, logs ...bootLog) error {
		r, err := readResult(name, logs, slow)
		if err == nil {
			results = append(results, r)
		} else if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := add(here, false, bootLog{here, l.log(here)}); err != nil {
		return "", err
	}
	for _, p := range plans(false) {
		name, err := l.name(p)
		if err != nil {
			return "", err
		}
		var logs []bootLog
		for _, b := range p.Boots {
			if _, err := os.Stat(l.log(name + "-" + b.Name)); err != nil && b.Named {
				continue
			}
			logs = append(logs, bootLog{b.Name, l.log(name + "-" + b.Name)})
		}
		if err := add(name, p.Slow, logs...); err != nil {
			return "", err
		}
	}
	var times strings.Builder
	if err := l.records(&times); err != nil {
		return "", err
	}
	return document(results, times.String()), nil
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

// log is where a boot's console goes; those of a short run apart.
func (l *lab) log(name string) string {
	if l.o.Short {
		name += "-short"
	}
	return filepath.Join(filepath.Dir(l.work), "log", name+".log")
}

// longest is for a boot on a machine that has other work to do, and may stop this one
// now and then.
const longest = 2 * time.Hour

// prepare makes a guest's kernel and initramfs.
func (l *lab) prepare(ctx context.Context, name string, p plan) (guest, error) {
	r, err := pick(l.releases, p.series)
	if err != nil {
		return guest{}, err
	}
	g := guest{Name: name, Limit: longest, Boots: p.Boots, Commit: l.commit, Log: func(b boot) string { return l.log(name + "-" + b.Name) }}
	unpacked, err := l.archive.unpack(ctx, r.Name, r.Arch, r.Packages...)
	if err != nil {
		return guest{}, err
	}
	if g.Kernel, err = kernelImage(unpacked); err != nil {
		return guest{}, err
	}
	if g.Disk, err = l.disk(ctx, p.Arch); err != nil {
		return guest{}, err
	}
	root := filepath.Join(l.work, g.Name)
	if err := system(ctx, l.archive, root, p.Arch); err != nil {
		return guest{}, err
	}
	if err := installModules(ctx, unpacked, root, r.Name); err != nil {
		return guest{}, err
	}
	for _, b := range p.Boots {
		if err := os.WriteFile(filepath.Join(root, b.suite()), suiteFile(b.Run), 0o644); err != nil {
			return guest{}, err
		}
	}
	g.Initrd = root + ".initrd"
	return g, pack(ctx, g.Initrd, root)
}

// disk is the one with the programs of an architecture: all that any of its guests
// runs.
func (l *lab) disk(ctx context.Context, arch string) (string, error) {
	image := filepath.Join(l.work, arch+".img")
	if l.disks[arch] {
		return image, nil
	}
	var wanted []binary
	for _, p := range plans(l.o.Short) {
		if p.Arch != arch {
			continue
		}
		for _, b := range l.o.narrowed(p.Boots) {
			wanted = append(wanted, b.Run...)
		}
	}
	root := filepath.Join(l.work, arch)
	if err := programs(ctx, l.archive, root, arch, wanted); err != nil {
		return "", err
	}
	l.disks[arch] = true
	return image, disk(ctx, image, root)
}
