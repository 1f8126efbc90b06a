package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNobodyReadsMemory: memory of other processes may never answer. What opens a file of /proc
// behind which it stands hands it to a child process that reads it (hostproc/memory), or is that child.
func TestNobodyReadsMemory(t *testing.T) {
	allowed := []string{
		"discovery/examine/target.go", "hostproc/handles.go", // opened for the child that examines, and read there
		"hostproc/hsperf/jvm.go", "hostproc/memory.go", "hostproc/threads/worker_linux.go", // by FS.ReadAt
		"promexport/netns.go", // a word of sockstat
	}
	files := []string{"mem", "cmdline", "environ", "maps", "smaps", "smaps_rollup", "numa_maps", "pagemap"}
	calls := []string{"CmdLine", "Environ", "ProcMaps", "ProcSMapsRollup", "ProcessVMReadv", "PtracePeekData", "PtracePeekText"}
	var found []string
	paths := sources(t, internal)
	require.Greater(t, len(paths), 400, "the packages are found")
	for _, path := range paths {
		tree, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if name := strings.Trim(n.Value, "\"/"); n.Kind == token.STRING && slices.Contains(files, name) {
					found = append(found, path)
				}
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if slices.Contains(calls, n.Sel.Name) && (!ok || x.Name != "os" && x.Name != "h") {
					found = append(found, path)
				}
			}
			return true
		})
	}
	for i := range found {
		found[i], _ = filepath.Rel(internal, found[i])
	}
	slices.Sort(found)
	require.Equal(t, allowed, slices.Compact(found))
}
