package structure

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// instead are words that no declared name has in it, and the terms of the field for each.
func instead() map[string]string {
	return map[string]string{
		"anew":       "again",
		"census":     "watchlist",
		"dear":       "expensive",
		"departed":   "closed, retired",
		"dismissed":  "unwatched, retired",
		"edition":    "the snapshot, its version",
		"few":        "min, max, or what they are: cheap, negligible",
		"former":     "previous, before",
		"glance":     "sample, scan",
		"gone":       "closed, retired, left",
		"held":       "owned, paused, connected: what it is",
		"inhabitant": "watched listener",
		"kept":       "cached, open, watched; of connections: keep-alive",
		"look":       "sample, scan, snapshot, reading; as a verb: read, add, search",
		"looks":      "samples, scans, snapshots, readings",
		"meet":       "set, read, handle",
		"mute":       "unreadable",
		"own":        "local, attributed, of whom: agentNamespace",
		"place":      "slot, address, location, key: what it is",
		"places":     "slots, addresses, locations, keys: what they are",
		"roster":     "watchlist",
		"seldom":     "rarely",
		"standing":   "state, history",
		"tally":      "count, total, counter",
		"tell":       "read, report, handle",
		"told":       "notes, reported",
		"unsee":      "reset",
		"vanished":   "closed",
	}
}

// partOfName is a word of a name in Go's spelling.
var partOfName = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// Names are what is declared below a folder, parameters and what is local to a function too, tests left out,
// that have a word of which there is a better one: "path:line: name: the words instead".
func Names(folder string, except ...string) (found []string, err error) {
	words := instead()
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case d.IsDir() && path != folder && (leftOut(d.Name()) || slices.Contains(except, filepath.ToSlash(path))):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, id := range declared(file) {
			for _, word := range partOfName.FindAllString(id.Name, -1) {
				if better, ok := words[strings.ToLower(word)]; ok {
					found = append(found, fmt.Sprintf("%s:%d: %s: %s", path, fset.Position(id.Pos()).Line, id.Name, better))
				}
			}
		}
		return nil
	})
	return found, err
}

// declared are the names that a file gives to anything: its package, functions with what they take, return and
// define, types with their fields and methods, constants and variables.
func declared(file *ast.File) []*ast.Ident {
	names := []*ast.Ident{file.Name}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.AssignStmt:
			names = append(names, defined(n.Tok, n.Lhs...)...)
		case *ast.RangeStmt:
			names = append(names, defined(n.Tok, n.Key, n.Value)...)
		}
		return true
	})
	return names
}

// defined are the names that := gives.
func defined(tok token.Token, to ...ast.Expr) (names []*ast.Ident) {
	for _, e := range to {
		if id, ok := e.(*ast.Ident); ok && tok == token.DEFINE {
			names = append(names, id)
		}
	}
	return names
}
