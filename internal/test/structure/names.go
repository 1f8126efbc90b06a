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

// Names are the functions, methods, types, fields, constants and package variables below a folder,
// tests left out, that have a word of which there is a better one: "path:line: name: the words
// instead". What is local to a function may be called anything.
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

// declared are the names that a file gives to others of its package, and the package's own.
func declared(file *ast.File) []*ast.Ident {
	names := []*ast.Ident{file.Name}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, decl.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				names = append(names, specified(spec)...)
			}
		}
	}
	return names
}

// specified are the names of a type with its fields and methods, or of constants and variables.
func specified(spec ast.Spec) (names []*ast.Ident) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		return spec.Names
	case *ast.TypeSpec:
		names = append(names, spec.Name)
		ast.Inspect(spec.Type, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				names = append(names, f.Names...)
			}
			return true
		})
	}
	return names
}
