package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLocksAreInTheTable: architecture.md says of each lock whether somebody waits for the kernel
// with it. What a test holds of that: no lock is left out, and none is named that is not there.
func TestLocksAreInTheTable(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/architecture.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(doc), "\n## Who owns what\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	locks := locksOf(t)
	require.Greater(t, len(locks), 20)
	for lock := range locks {
		require.Contains(t, table, "`"+lock+"`", "a lock that the table does not have")
	}
	for _, m := range regexp.MustCompile("`([a-z]+\\.\\w+\\.[a-z]\\w*)`").FindAllStringSubmatch(table, -1) {
		require.True(t, locks[m[1]], "%s is no lock", m[1])
	}
}

// locksOf are the fields that are locks, as package.type.field.
func locksOf(t *testing.T) map[string]bool {
	out := make(map[string]bool)
	for _, path := range sources(t, internal) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if isLock(field.Type) {
						for _, name := range field.Names {
							out[file.Name.Name+"."+spec.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
			return true
		})
	}
	return out
}

func isLock(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "sync" && (s.Sel.Name == "Mutex" || s.Sel.Name == "RWMutex")
}
