package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dials are what opens a connection, by package and name.
func dials() map[string][]string {
	return map[string][]string{
		"net/http": {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext"},
		"net":      {"Dial", "DialTimeout", "Dialer", "DialTCP", "DialUDP", "DialIP", "DialUnix"},
	}
}

// TestAgentMakesNoOutboundConnection: what runs with privileges sends nothing anywhere. It asks
// Actuator at loopback, in the namespace of the server that it was configured for, and
// that is all; its log records and recordings are taken away by a program of its own.
func TestAgentMakesNoOutboundConnection(t *testing.T) {
	allowed := []string{
		"discovery/door.go", "discovery/meter.go", // Actuator, at a literal loopback address in the server's namespace, without redirects
		"threaddump/door_linux.go", // the socket file of the JVM that runs as the own user
	}
	const module = "github.com/tcpdiag/tcpdiag/"
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"internal/agent", module+"internal/schedule", module+"internal/clients", module+"internal/discovery", module+"internal/threaddump")
	list.Dir = internal
	out, err := list.Output()
	require.NoError(t, err)
	var dialing []string
	checked := 0
	for name := range strings.Lines(string(out)) {
		folder, ours := strings.CutPrefix(strings.TrimSpace(name), module+"internal/")
		if !ours {
			continue
		}
		files, err := filepath.Glob(filepath.Join(internal, filepath.FromSlash(folder), "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			checked++
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			if opens(tree) {
				path, err := filepath.Rel(internal, file)
				require.NoError(t, err)
				dialing = append(dialing, filepath.ToSlash(path))
			}
		}
	}
	require.Greater(t, checked, 200, "the agent's packages are found")
	slices.Sort(dialing)
	require.Equal(t, allowed, dialing)
}

// opens reports whether a file names anything that opens a connection.
func opens(file *ast.File) (found bool) {
	names := make(map[string][]string) // by the name that the file calls a package
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		of, ok := dials()[path]
		if !ok {
			continue
		}
		name := filepath.Base(path)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = of
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(names[x.Name], s.Sel.Name) {
				found = true
			}
		}
		return true
	})
	return found
}
