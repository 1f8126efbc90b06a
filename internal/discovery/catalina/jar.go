package catalina

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
)

var errNoVersion = errors.New("no version in lib/catalina.jar, and none in the folder's name")

// version is the version of the installation: what lib/catalina.jar says of
// itself, else the name of its folder.
func (p *Process) version() (Version, error) {
	var failed error
	for _, dir := range []string{p.base(), p.home()} {
		v, err := p.jarVersion(path.Join(dir, "lib", "catalina.jar"))
		if err == nil {
			return v, nil
		}
		failed = err
	}
	found := regexp.MustCompile(`tomcat-(\d+\.\d+\.[0-9][0-9.M-]*)`).FindStringSubmatch(p.home())
	if found != nil {
		if v, err := ParseVersion(found[1]); err == nil {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("%w: %w", errNoVersion, failed)
}

// jarVersion reads catalina.jar's ServerInfo.properties, or its manifest where
// that was edited to hide the version.
func (p *Process) jarVersion(name string) (Version, error) {
	f, err := p.Open(name)
	if err != nil {
		return Version{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return Version{}, err
	}
	if info.Size() > maxJar {
		return Version{}, fmt.Errorf("%q: %w (%d bytes)", name, bounded.ErrTooLarge, maxJar)
	}
	jar, err := zip.NewReader(f, info.Size())
	if err != nil {
		return Version{}, fmt.Errorf("%q: %w", name, errJar)
	}
	for _, entry := range []struct{ file, key string }{
		// server.number leaves out which milestone it is.
		{"org/apache/catalina/util/ServerInfo.properties", "server.info=Apache Tomcat/"},
		{"org/apache/catalina/util/ServerInfo.properties", "server.number="},
		{"META-INF/MANIFEST.MF", "Implementation-Version: "},
	} {
		if v, err := versionIn(jar, entry.file, entry.key); err == nil {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("%q: %w", name, errNoVersion)
}

var errJar = errors.New("not a usable zip archive")

// versionIn finds the line of a small text file that begins with key.
func versionIn(jar *zip.Reader, file, key string) (Version, error) {
	i := slices.IndexFunc(jar.File, func(f *zip.File) bool { return f.Name == file })
	if i < 0 {
		return Version{}, errNoVersion
	}
	f, err := jar.File[i].Open()
	if err != nil {
		return Version{}, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return Version{}, err
	}
	for line := range bytes.Lines(data) {
		if value, ok := strings.CutPrefix(string(line), key); ok {
			return ParseVersion(strings.TrimSpace(value))
		}
	}
	return Version{}, errNoVersion
}
