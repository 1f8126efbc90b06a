package observer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mostFields  = 20
	mostMethods = 25
)

// No type of what observes grows beyond what one can keep in mind.
func TestTypesStaySmall(t *testing.T) {
	for _, name := range []string{"observer", "namespace", "losses", "connections", "target"} {
		fields, methods := sizes(t, filepath.Join("..", name))
		require.NotEmpty(t, methods, name)
		for typ, n := range fields {
			require.LessOrEqual(t, n, mostFields, "fields of %s.%s", name, typ)
		}
		for typ, n := range methods {
			require.LessOrEqual(t, n, mostMethods, "methods of %s.%s", name, typ)
		}
	}
}

// sizes counts the fields of a package's structs and the methods of its types.
func sizes(t *testing.T, folder string) (fields, methods map[string]int) {
	t.Helper()
	fields, methods = make(map[string]int), make(map[string]int)
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					fields[n.Name.Name] = s.Fields.NumFields()
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					methods[receiver(n.Recv.List[0].Type)]++
				}
			}
			return true
		})
	}
	return fields, methods
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
