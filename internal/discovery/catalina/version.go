package catalina

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is Tomcat's version. The zero value is an unknown one.
type Version struct {
	Major, Minor, Patch int
	// Milestone is M of 10.0.0-M5 and 9.0.0.M9, 0 for a release.
	Milestone int
}

// ParseVersion reads "9.0.117", "10.0.0-M5", "9.0.0.M9" and the four numbers of
// server.number, "9.0.117.0".
func ParseVersion(s string) (Version, error) {
	number, milestone, _ := strings.Cut(strings.Replace(s, ".M", "-M", 1), "-M")
	parts := strings.Split(number, ".")
	if len(parts) < 2 {
		return Version{}, fmt.Errorf("version %q: not of the form 1.2.3", s)
	}
	var v Version
	for i, field := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if i >= len(parts) {
			break
		}
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return Version{}, fmt.Errorf("version %q: %w", s, err)
		}
		*field = int(n)
	}
	if n, err := strconv.ParseUint(milestone, 10, 16); err == nil {
		v.Milestone = int(n)
	}
	return v, nil
}

// Known reports whether there is a version.
func (v Version) Known() bool { return v.Major > 0 }

// String is the version as Tomcat prints it, "" when it is not known.
func (v Version) String() string {
	switch {
	case !v.Known():
		return ""
	case v.Milestone > 0:
		return fmt.Sprintf("%d.%d.%d-M%d", v.Major, v.Minor, v.Patch, v.Milestone)
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

func (v Version) compare(w Version) int {
	a := [4]int{v.Major, v.Minor, v.Patch, v.stage()}
	b := [4]int{w.Major, w.Minor, w.Patch, w.stage()}
	for i := range a {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}

// stage puts a release behind all of its milestones.
func (v Version) stage() int {
	if v.Milestone == 0 {
		return 1 << 16
	}
	return v.Milestone
}

// has says whether a change that first appeared in each of the given versions,
// one for each line of releases, is in v. A line newer than all of them has it;
// an unknown version is taken for a new one.
func (v Version) has(first ...Version) bool {
	newest := true
	for _, f := range first {
		if v.Major == f.Major && v.Minor == f.Minor {
			return v.compare(f) >= 0
		}
		newest = newest && v.compare(f) > 0
	}
	return newest || !v.Known()
}
