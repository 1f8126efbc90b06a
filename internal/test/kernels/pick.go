package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// release is a kernel as the distribution packages it.
type release struct {
	Name     string   // "6.12.107+deb13-cloud-amd64", as uname -r prints it
	Arch     string   // Debian's name
	Version  []int    // 6, 12, 107
	Packages []string // image and modules: one package before 7.0, three since
}

// imagePackage is a kernel for virtual machines: without the drivers of real
// ones it is a third as large.
var imagePackage = regexp.MustCompile(`^linux-(image|binary)-(([0-9.]+)(?:-([0-9]+))?[^ ]*-cloud-(amd64|arm64))$`)

// releases reads the packages that apt-cache dumpavail lists.
func releases(dump io.Reader) ([]release, error) {
	found := map[string]release{}
	lines := bufio.NewScanner(dump)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, ok := strings.CutPrefix(lines.Text(), "Package: ")
		if !ok {
			continue
		}
		if r, ok := parseRelease(name); ok && (found[r.Name].Name == "" || len(r.Packages) > 1) {
			found[r.Name] = r
		}
	}
	var all []release
	for _, r := range found {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b release) int { return slices.Compare(a.Version, b.Version) })
	return all, lines.Err()
}

// parseRelease: since 7.0 the image is in linux-binary, the modules in
// linux-modules, their lists in linux-base.
func parseRelease(pkg string) (release, bool) {
	m := imagePackage.FindStringSubmatch(pkg)
	if m == nil {
		return release{}, false
	}
	r := release{Name: m[2], Arch: m[5], Packages: []string{pkg}}
	if m[1] == "binary" {
		r.Packages = append(r.Packages, "linux-modules-"+r.Name, "linux-base-"+r.Name)
	}
	for part := range strings.SplitSeq(m[3]+"."+m[4], ".") {
		if n, err := strconv.Atoi(part); err == nil {
			r.Version = append(r.Version, n)
		}
	}
	return r, true
}

// pick finds the newest kernel of a series.
func pick(all []release, s series) (release, error) {
	var of []release
	for _, r := range all {
		if r.Arch == s.Arch {
			of = append(of, r)
		}
	}
	line := s.Version
	if s.AtLeast != "" {
		least := numbers(s.AtLeast)
		if i := slices.IndexFunc(of, func(r release) bool { return slices.Compare(r.Version, least) >= 0 }); i >= 0 {
			line = fmt.Sprintf("%d.%d", of[i].Version[0], of[i].Version[1])
		}
	}
	for _, r := range slices.Backward(of) {
		if line == "" || slices.Equal(r.Version[:2], numbers(line)) {
			return r, nil
		}
	}
	return release{}, fmt.Errorf("no packaged kernel for %+v", s)
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		all = append(all, n)
	}
	return all
}
