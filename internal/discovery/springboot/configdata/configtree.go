package configdata

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds of one config tree: links may make it infinite, which maxOpens ends.
const (
	maxTreeDepth = 8
	maxTreeFiles = 1000
	maxTreeValue = 256 << 10
)

// configTrees are the directories of "configtree:/etc/config/" or ".../*/".
func (im *importer) configTrees(loc location) []candidate {
	dir := strings.TrimPrefix(loc.value, "configtree:")
	base, rest, pattern := strings.Cut(dir, "*/")
	if !pattern {
		return []candidate{im.configTree(loc, filePath(dir))}
	}
	if rest != "" {
		return nil
	}
	var out []candidate
	for _, sub := range im.subdirectories(filePath(base)) {
		out = append(out, im.configTree(loc, classpath.JoinDir(filePath(base), sub)))
	}
	return out
}

func (im *importer) configTree(loc location, dir string) candidate {
	return candidate{ref: "file:" + dir + "/", id: "configtree:" + dir, load: func() ([]*properties.Document, error) {
		left := *im.quota
		d := properties.New(model.SourceFile, "config tree "+im.secret.apply(dir), &left)
		err := im.readTree(d, dir, "", 0)
		if classpath.Absent(err) && loc.optional {
			err = nil
		}
		err = errors.Join(err, left.Err())
		if err == nil {
			*im.quota = left
		}
		return []*properties.Document{d}, err
	}}
}

// readTree puts every file below dir as a property: its path is the name, its
// content the value (ConfigTreePropertySource). Names that begin with ".." are
// the hidden directories of a Kubernetes volume.
func (im *importer) readTree(d *properties.Document, dir, prefix string, depth int) error {
	entries, err := im.p.List(dir)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") || len(d.Names) >= maxTreeFiles {
			continue
		}
		name := prefix + e.Name()
		data, err := im.p.Read(classpath.JoinDir(dir, e.Name()), maxTreeValue)
		switch {
		case err == nil:
			if im.budget -= int64(len(data)); im.budget < 0 {
				return bounded.ErrTooLarge
			}
			d.Put(name, trimNewLine(string(data)))
		case errors.Is(err, bounded.ErrNotRegular) && depth < maxTreeDepth:
			_ = im.readTree(d, classpath.JoinDir(dir, e.Name()), name+".", depth+1)
		case !classpath.Absent(err) && !errors.Is(err, bounded.ErrNotRegular):
			im.unavailable("config tree file "+classpath.JoinDir(dir, e.Name()), launch.Reason(err), "run as the process's user")
		}
	}
	return nil
}

// trimNewLine drops the line end of a value of one line
// (Option.AUTO_TRIM_TRAILING_NEW_LINE).
func trimNewLine(s string) string {
	if strings.Count(s, "\n") != 1 || !strings.HasSuffix(s, "\n") {
		return s
	}
	return strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
}
