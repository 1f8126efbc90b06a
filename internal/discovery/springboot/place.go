package springboot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// place is one entry of the class path: a directory, a jar, or a part of one
// (BOOT-INF/classes/). A jar is opened when something is first looked for in it.
type place struct {
	label  string // for people: app.jar, /app/classes
	id     string // path of the file or directory, with the entry of a nested jar behind "!"
	dir    string // the directory, or ""
	prefix string // of the names in zip

	open func() (*zipDir, error)
	zip  *zipDir
	err  error
}

func dirPlace(dir string) *place { return &place{label: dir, id: dir, dir: dir} }

// archive opens the jar once.
func (pl *place) archive() (*zipDir, error) {
	if pl.zip == nil && pl.err == nil && pl.open != nil {
		pl.zip, pl.err = pl.open()
	}
	return pl.zip, pl.err
}

// jarName is the file name of a jar, "" for a directory.
func (pl *place) jarName() string {
	if pl.dir != "" || pl.prefix != "" {
		return ""
	}
	return path.Base(pl.id)
}

// read returns the resource of that name, or an error that is absent.
func (pl *place) read(p *Process, name string, limit int64) ([]byte, error) {
	if pl.dir != "" {
		return p.read(joinDir(pl.dir, name), limit)
	}
	z, err := pl.archive()
	if err != nil {
		return nil, err
	}
	return z.read(pl.prefix+name, limit)
}

// has says whether the resource exists.
func (pl *place) has(p *Process, name string) bool {
	if pl.dir != "" {
		f, _, err := p.open(joinDir(pl.dir, name))
		if err == nil {
			_ = f.Close()
		}
		return err == nil || !absent(err)
	}
	z, err := pl.archive()
	if err != nil {
		return false
	}
	_, ok := z.entries[pl.prefix+name]
	return ok
}

// names are the jar's entries below prefix, without it.
func (pl *place) names() []string {
	z, err := pl.archive()
	if err != nil || z == nil {
		return nil
	}
	var out []string
	for _, n := range z.names {
		if rest, ok := strings.CutPrefix(n, pl.prefix); ok {
			out = append(out, rest)
		}
	}
	return out
}

// joinDir joins without turning "." into an absolute path.
func joinDir(dir, name string) string {
	if dir == "" {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// absent says that an error means "there is no such file" and nothing worse.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoEntry) || notDirectory(err)
}

// fileJar is a jar file of the process.
func (c *classPath) fileJar(p *Process, file string, keep func([]byte) bool) *place {
	return &place{label: path.Base(file), id: file, open: func() (*zipDir, error) {
		f, info, err := p.open(file)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
		if len(c.files) > maxOpenJars {
			c.over = true
			return nil, errJars
		}
		z, err := readZip(f, info.Size(), keep, &c.archives)
		if err != nil {
			c.over = c.over || errors.Is(err, ErrTooLarge)
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return z, nil
	}}
}

// nestedJar is a jar inside a jar.
func (c *classPath) nestedJar(outer *place, entry string) *place {
	return &place{
		label: path.Base(entry) + " in " + outer.label,
		id:    outer.id + "!/" + entry,
		open: func() (*zipDir, error) {
			z, err := outer.archive()
			if err != nil {
				return nil, err
			}
			nested, err := z.nested(entry, keepConfig, &c.archives)
			c.over = c.over || errors.Is(err, ErrTooLarge)
			return nested, err
		},
	}
}

// keepAll keeps what may be of interest in the application's own jar: all
// that is not a directory.
func keepAll(name []byte) bool { return !bytes.HasSuffix(name, []byte("/")) }

// keepConfig keeps what may be of interest in a library.
func keepConfig(name []byte) bool {
	if bytes.HasSuffix(name, []byte(".class")) {
		return string(name) == classSpringApplication
	}
	for _, ext := range []string{".properties", ".yml", ".yaml", ".xml"} {
		if bytes.HasSuffix(name, []byte(ext)) {
			return !bytes.HasPrefix(name, []byte("META-INF/maven/"))
		}
	}
	return string(name) == manifestName
}

const (
	manifestName           = "META-INF/MANIFEST.MF"
	classSpringApplication = "org/springframework/boot/SpringApplication.class"
	tomcatServerInfo       = "org/apache/catalina/util/ServerInfo.properties"
)
