package springboot

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// loadWithin fails when Load hangs.
func loadWithin(t *testing.T, p launch.Process, limit time.Duration) *Environment {
	t.Helper()
	type result struct {
		e   *Environment
		err error
	}
	done := make(chan result, 1)
	go func() {
		e, err := Load(p)
		done <- result{e, err}
	}()
	select {
	case r := <-done:
		require.NoError(t, r.err)
		return r.e
	case <-time.After(limit):
		t.Fatal("Load hangs")
		return nil
	}
}

// whats are the things that an environment says it could not see.
func whats(list []model.Unavailable) []string {
	var out []string
	for _, u := range list {
		out = append(out, u.What+": "+u.Why)
	}
	return out
}

// Something else in the place of a config file is said; every other source
// still counts, and nothing hangs.
func TestHostileConfigFiles(t *testing.T) {
	tests := map[string]struct {
		make func(t *testing.T, file string)
		want string // in what is unavailable; "" for nothing
	}{
		"fifo":             {func(t *testing.T, f string) { require.NoError(t, syscall.Mkfifo(f, 0o600)) }, "not a regular file"},
		"directory":        {func(t *testing.T, f string) { require.NoError(t, os.Mkdir(f, 0o700)) }, "not a regular file"},
		"device":           {func(t *testing.T, f string) { require.NoError(t, os.Symlink("/dev/zero", f)) }, "not a regular file"},
		"link to itself":   {func(t *testing.T, f string) { require.NoError(t, os.Symlink(f, f)) }, ""},
		"link to nothing":  {func(t *testing.T, f string) { require.NoError(t, os.Symlink(f+"x", f)) }, ""},
		"five megabytes":   {func(t *testing.T, f string) { require.NoError(t, os.WriteFile(f, make([]byte, 5<<20), 0o600)) }, "larger than"},
		"sparse terabyte":  {func(t *testing.T, f string) { writeSparse(t, f, 1<<40) }, "larger than"},
		"malformed":        {func(t *testing.T, f string) { require.NoError(t, os.WriteFile(f, []byte("a: [b"), 0o600)) }, "config/application.yml"},
		"binary":           {func(t *testing.T, f string) { require.NoError(t, os.WriteFile(f, []byte("\x00\x01\xff"), 0o600)) }, "config/application.yml"},
		"thousand aliases": {func(t *testing.T, f string) { require.NoError(t, os.WriteFile(f, []byte(laughs()), 0o600)) }, "larger than"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := binderCase{Files: map[string]string{"application.yml": "server.port: 1\n"}, Env: map[string]string{"SERVER_TOMCAT_ACCEPTCOUNT": "7"}}
			p := jarLayout(t, dir, "3.5.16", c)
			file := filepath.Join(dir, "cwd", "config", "application.yml")
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
			tt.make(t, file)
			e := loadWithin(t, p, 30*time.Second)
			v, ok, err := e.Get("server.port")
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, Value{Text: "1", Kind: model.SourceFile, Source: "application.yml"}, v)
			v, _, _ = e.Get("server.tomcat.accept-count")
			require.Equal(t, "7", v.Text)
			if tt.want == "" {
				require.Empty(t, e.Unavailable())
				return
			}
			require.Len(t, e.Unavailable(), 1, whats(e.Unavailable()))
			require.Contains(t, strings.Join(whats(e.Unavailable()), ""), tt.want)
			require.Contains(t, e.Unavailable()[0].What, "config/application.yml")
		})
	}
}

func laughs() string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 20; i++ {
		prev, next := string(rune('a'+i-1)), string(rune('a'+i))
		text += next + ": &" + next + "0 [" + strings.TrimSuffix(strings.Repeat("*"+prev+"0,", 9), ",") + "]\n"
	}
	return text
}

func writeSparse(t *testing.T, file string, size int64) {
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	require.NoError(t, f.Close())
}

// Files that are legal and made to cost time: many documents, each with
// imports, conditions and placeholders that lead through all the others.
func TestLongHostileAmount(t *testing.T) {
	var docs, chain, profiles strings.Builder
	for i := range 300 {
		n := strconv.Itoa(i)
		docs.WriteString("#---\nspring.config.activate.on-profile=${c0} | p" + n + "\nspring.config.import=optional:file:x${c0}" + n + ".yml\nspring.profiles.include=${c0}\n")
		chain.WriteString("c" + n + "=${c" + strconv.Itoa(i+1) + ":${d" + n + ":${c" + strconv.Itoa(i+2) + "}}}\n")
		profiles.WriteString("p" + n + ",")
	}
	for _, boot := range []string{"2.3.12.RELEASE", "3.5.16"} {
		for name, files := range map[string]map[string]string{
			"documents": {"application.properties": docs.String()},
			"chain":     {"application.properties": chain.String() + "server.port=${c0}\nserver.tomcat.accept-count=${c1}\n"},
			"both":      {"application.properties": chain.String(), "config/application.properties": docs.String()},
		} {
			t.Run(boot+" "+name, func(t *testing.T) {
				p := jarLayout(t, t.TempDir(), boot, binderCase{Files: files, Args: []string{"--spring.profiles.active=" + profiles.String()}})
				before := jvmtest.Allocated()
				e := loadWithin(t, p, time.Minute)
				_ = e.Settings()
				require.NotEmpty(t, append(e.Unavailable(), e.Settings().Unavailable...))
				require.Less(t, jvmtest.Allocated()-before, uint64(4<<30))
			})
		}
	}
}

// A config directory that is a loop of links, and one of very many files.
func TestHostileDirectories(t *testing.T) {
	dir := t.TempDir()
	c := binderCase{
		Files: map[string]string{"config/a/application.yml": "server.port: 1\n"},
		Args:  []string{"--spring.config.import=optional:configtree:config/,optional:configtree:many/"},
	}
	p := jarLayout(t, dir, "3.5.16", c)
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "cwd", "config", "loop")))
	many := filepath.Join(dir, "cwd", "many")
	require.NoError(t, os.Mkdir(many, 0o700))
	for i := range 3000 {
		require.NoError(t, os.WriteFile(filepath.Join(many, "f"+string(rune('a'+i%26))+strings.Repeat("x", i/26)), nil, 0o600))
	}
	e := loadWithin(t, p, 30*time.Second)
	v, _, err := e.Get("server.port")
	require.NoError(t, err)
	require.Equal(t, "1", v.Text)
	names := 0
	for _, d := range e.docs {
		names += len(d.Names)
	}
	require.Less(t, names, 3000)
}

// An application jar that cannot be read leaves what the command line and the
// environment say, and the reason.
func TestHostileJars(t *testing.T) {
	for name, breakIt := range map[string]func(t *testing.T, file string){
		"gone": func(t *testing.T, f string) { require.NoError(t, os.Remove(f)) },
		"replaced": func(t *testing.T, f string) {
			require.NoError(t, os.WriteFile(f, []byte("PK\x03\x04 half a copy"), 0o600))
		},
		"truncated": func(t *testing.T, f string) { require.NoError(t, os.Truncate(f, 300)) },
		"fifo": func(t *testing.T, f string) {
			require.NoError(t, os.Remove(f))
			require.NoError(t, syscall.Mkfifo(f, 0o600))
		},
		"sparse": func(t *testing.T, f string) { writeSparse(t, f, 3<<30) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := jarLayout(t, dir, "3.5.16", binderCase{Args: []string{"--server.port=9"}, Env: map[string]string{"SERVER_TOMCAT_ACCEPT_COUNT": "7"}})
			breakIt(t, filepath.Join(dir, "app.jar"))
			e := loadWithin(t, p, 30*time.Second)
			v, _, err := e.Get("server.port")
			require.NoError(t, err)
			require.Equal(t, "9", v.Text)
			require.Contains(t, e.Unavailable()[0].What, "application jar")
			require.NotEmpty(t, e.Unavailable()[0].Why)
		})
	}
}

// A nested library that is no jar does not stop the search behind it.
func TestHostileLibrary(t *testing.T) {
	dir := t.TempDir()
	inner := jvmtest.ZipOf(t, 8, map[string]string{"application.yml": "server.port: 5\n"})
	jvmtest.WriteZip(t, filepath.Join(dir, "app.jar"), []string{jvmtest.Manifest, "BOOT-INF/lib/a.jar", "BOOT-INF/lib/b.jar"}, map[string]string{
		jvmtest.Manifest:     "Main-Class: org.springframework.boot.loader.JarLauncher\nSpring-Boot-Version: 2.7.18\n",
		"BOOT-INF/lib/a.jar": "no jar at all", "BOOT-INF/lib/b.jar": string(inner),
	})
	e := loadWithin(t, processIn(dir, "java", "-jar", "app.jar"), 10*time.Second)
	v, _, err := e.Get("server.port")
	require.NoError(t, err)
	require.Equal(t, Value{Text: "5", Kind: model.SourceFile, Source: "application.yml in b.jar in app.jar"}, v)
}

// A file that the user may not read is said with what would help.
func TestUnreadableConfigFile(t *testing.T) {
	dir := t.TempDir()
	p := jarLayout(t, dir, "3.5.16", binderCase{Files: map[string]string{"application.yml": "server.port: 1\n"}})
	open := p.Open
	p.Open = func(path string) (*os.File, error) {
		if strings.HasSuffix(path, "application.yml") {
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.EACCES}
		}
		return open(path)
	}
	e := loadWithin(t, p, 10*time.Second)
	require.Contains(t, whats(e.Unavailable()), "config file file:./application.yml: permission denied")
}

// Nothing at all can be opened: the command line alone still says something.
func TestNothingReadable(t *testing.T) {
	p := launch.Process{Args: []string{"java", "-Dserver.port=3", "-jar", "app.jar"}}
	e := loadWithin(t, p, 10*time.Second)
	v, _, err := e.Get("server.port")
	require.NoError(t, err)
	require.Equal(t, Value{Text: "3", Kind: model.SourceProperty, Source: "-Dserver.port"}, v)
	require.GreaterOrEqual(t, len(e.Unavailable()), 2)
}
