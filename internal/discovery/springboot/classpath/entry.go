package classpath

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
)

// Entry is one entry of the class path: a directory, a jar, or a part of one
// (BOOT-INF/classes/). A jar is opened when something is first looked for in it.
type Entry struct {
	Label  string // for people: app.jar, /app/classes
	ID     string // path of the file or directory, with the entry of a nested jar behind "!"
	Dir    string // the directory, or ""
	prefix string // of the names in zip

	open func() (*zipDir, error)
	zip  *zipDir
	err  error
}

func dirEntry(dir string) *Entry { return &Entry{Label: dir, ID: dir, Dir: dir} }

// archive opens the jar once.
func (pl *Entry) archive() (*zipDir, error) {
	if pl.zip == nil && pl.err == nil && pl.open != nil {
		pl.zip, pl.err = pl.open()
	}
	return pl.zip, pl.err
}

// jarName is the file name of a jar, "" for a directory.
func (pl *Entry) jarName() string {
	if pl.Dir != "" || pl.prefix != "" {
		return ""
	}
	return path.Base(pl.ID)
}

// read returns the resource of that name, or an error that is absent.
func (pl *Entry) read(p *launch.Process, name string, limit int64) ([]byte, error) {
	if pl.Dir != "" {
		return p.Read(JoinDir(pl.Dir, name), limit)
	}
	z, err := pl.archive()
	if err != nil {
		return nil, err
	}
	return z.read(pl.prefix+name, limit)
}

// has says whether the resource exists.
func (pl *Entry) has(p *launch.Process, name string) bool {
	if pl.Dir != "" {
		f, _, err := p.OpenFile(JoinDir(pl.Dir, name))
		if err == nil {
			_ = f.Close()
		}
		return err == nil || !Absent(err)
	}
	z, err := pl.archive()
	if err != nil {
		return false
	}
	_, ok := z.entries[pl.prefix+name]
	return ok
}

// names are the jar's entries below prefix, without it.
func (pl *Entry) names() []string {
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

// JoinDir joins without turning "." into an absolute path.
func JoinDir(dir, name string) string {
	if dir == "" {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// Absent says that an error means "there is no such file" and nothing worse.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoEntry) || launch.NotDirectory(err)
}

// fileJar is a jar file of the process.
func (c *ClassPath) fileJar(p *launch.Process, file string, keep func([]byte) bool) *Entry {
	return &Entry{Label: path.Base(file), ID: file, open: func() (*zipDir, error) {
		f, info, err := p.OpenFile(file)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
		if len(c.files) > maxOpenJars {
			c.Over = true
			return nil, ErrJars
		}
		z, err := readZip(f, info.Size(), keep, &c.archives)
		if err != nil {
			c.Over = c.Over || errors.Is(err, bounded.ErrTooLarge)
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		return z, nil
	}}
}

// nestedJar is a jar inside a jar.
func (c *ClassPath) nestedJar(outer *Entry, entry string) *Entry {
	return &Entry{
		Label: path.Base(entry) + " in " + outer.Label,
		ID:    outer.ID + "!/" + entry,
		open: func() (*zipDir, error) {
			z, err := outer.archive()
			if err != nil {
				return nil, err
			}
			nested, err := z.nested(entry, keepConfig, &c.archives)
			c.Over = c.Over || errors.Is(err, bounded.ErrTooLarge)
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
