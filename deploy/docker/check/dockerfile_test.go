package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

func parse(t *testing.T, path string) []instructions.Stage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	ast, err := parser.Parse(bytes.NewReader(text))
	require.NoError(t, err)
	lint := linter.New(&linter.Config{Warn: func(rule, description, _, text string, at []parser.Range) {
		t.Errorf("%s:%d: %s: %s (%s)", path, at[0].Start.Line, rule, text, description)
	}})
	stages, _, err := instructions.Parse(ast.AST, lint)
	require.NoError(t, err)
	return stages
}

// What is tested without a registry is what is published: the two targets have
// one base and differ in one COPY. A builder that goes through the stages one
// by one gets to "prebuilt" without an image of a registry.
func TestDockerfilesDoNotDrift(t *testing.T) {
	tests := map[string]struct{ final, binary string }{
		"deploy/docker/Dockerfile":         {"image", "/usr/local/bin/tcpdiag"},
		"deploy/docker/archive.Dockerfile": {"image", "/usr/local/bin/tcpdiag-archive"},
		"deploy/compose/app.Dockerfile":    {"app", "/app/sample-server.jar"},
	}
	for path, tt := range tests {
		t.Run(path, func(t *testing.T) {
			stages := parse(t, path)
			require.Len(t, stages, 4)
			base, prebuilt, build, final := stages[0], stages[1], stages[2], stages[3]
			require.Equal(t, []string{"base", "prebuilt", "build", tt.final}, []string{base.Name, prebuilt.Name, build.Name, final.Name})
			for _, s := range []instructions.Stage{prebuilt, final} {
				require.Equal(t, "base", s.BaseName)
				require.Equal(t, tt.binary, copies(t, s))
			}
			require.Regexp(t, `:`, build.BaseName, "a version is named")
		})
	}
}

// copies is where a stage that does nothing else copies one file to.
func copies(t *testing.T, s instructions.Stage) (to string) {
	t.Helper()
	for _, command := range s.Commands {
		switch c := command.(type) {
		case *instructions.ArgCommand:
		case *instructions.CopyCommand:
			require.Empty(t, to)
			to = c.DestPath
		default:
			t.Errorf("%s: %s belongs into the base", s.Name, c.Name())
		}
	}
	return to
}

// The image's version is stamped as that of `make build`.
func TestLinkerFlagsAreTheMakefiles(t *testing.T) {
	flags := func(path string) []string {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		plain := strings.NewReplacer(
			"$(VERSION_PKG)", "github.com/prometheus/common/version", "${VERSION}", "V", "$(VERSION)", "V", "${REVISION}", "R", "$(REVISION)", "R",
		).Replace(string(text))
		return regexp.MustCompile(`-s -w(?: -X [\w./]+=\w+)+`).FindAllString(plain, 1)
	}
	require.Len(t, flags("Makefile"), 1)
	require.Equal(t, flags("Makefile"), flags("deploy/docker/Dockerfile"))
	require.Equal(t, flags("Makefile"), flags("deploy/docker/archive.Dockerfile"))
}

// .dockerignore lets in what the compiler needs, and neither history nor tests.
func TestBuildContext(t *testing.T) {
	text, err := os.Open(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	defer text.Close()
	patterns, err := ignorefile.ReadAll(text)
	require.NoError(t, err)
	ignored, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	reaches := func(path string) bool {
		out, err := ignored.MatchesOrParentMatches(path)
		require.NoError(t, err)
		return !out
	}
	needed := slices.Concat(sources(t, ".", "./cmd/tcpdiag"), sources(t, "cmd/tcpdiag-archive", "."), []string{
		"go.mod", "go.sum", "cmd/tcpdiag-archive/go.mod", "cmd/tcpdiag-archive/go.sum", "LICENSE", "bin/linux-amd64/tcpdiag", "bin/linux-arm64/tcpdiag-archive",
	})
	require.Greater(t, len(needed), 100)
	for _, path := range needed {
		require.True(t, reaches(path), path)
	}
	for _, path := range []string{
		".git/config", ".cache/bin/golangci-lint", "bin/tcpdiag", "README.md", "deploy/docker/Dockerfile",
		"internal/cli/main_test.go", "internal/render/testdata/golden.json",
	} {
		require.False(t, reaches(path), path)
	}
}

// sources are the project's files that a program of a module is compiled from, as paths from root.
func sources(t *testing.T, module, program string) []string {
	t.Helper()
	const template = `{{if and .Module (or .Module.Main (eq .Module.Path "github.com/tcpdiag/tcpdiag"))}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}
{{end}}{{end}}`
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", template, program)
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOWORK=off")
	out, err := cmd.Output()
	require.NoError(t, err)
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	var files []string
	for _, path := range strings.Fields(string(out)) {
		path, err := filepath.Rel(top, path)
		require.NoError(t, err)
		files = append(files, path)
	}
	return files
}
