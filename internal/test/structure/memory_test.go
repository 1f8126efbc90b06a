package structure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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
	checked := 0
	require.NoError(t, filepath.WalkDir(internal, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && filepath.Dir(path) == filepath.Clean(internal) && d.Name() == "test":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		checked++
		tree, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
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
		return nil
	}))
	require.Greater(t, checked, 400, "the packages are found")
	for i := range found {
		found[i], _ = filepath.Rel(internal, found[i])
	}
	slices.Sort(found)
	require.Equal(t, allowed, slices.Compact(found))
}
