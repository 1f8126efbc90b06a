package structure

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Row is a line of a path: a package, and the functions that the way leads through, each of
// which calls the next itself.
type Row struct {
	Package   string
	Text      string
	Functions []string // "Type.method", or "function"
}

// Apart reports whether no function above calls it.
func (r *Row) Apart() bool {
	return strings.Contains(r.Text, "wakes up") || strings.Contains(r.Text, "called back")
}

// Path are the rows of the drawing below a heading of a page.
func Path(page, heading string) (rows []Row) {
	_, page, _ = strings.Cut(page, heading)
	_, page, _ = strings.Cut(page, "```\n")
	page, _, _ = strings.Cut(page, "```")
	named := regexp.MustCompile(`^ ([a-z/]+)  +(.*?)   +(\S.*)$`)
	more := regexp.MustCompile(`^   [│▼] +(\S.*?)   +(\S.*)$`)
	pkg := ""
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if m := named.FindStringSubmatch(line); m != nil {
			pkg = m[1]
			rows = append(rows, Row{pkg, m[2], strings.Split(m[3], " → ")})
		} else if m := more.FindStringSubmatch(line); m != nil {
			rows = append(rows, Row{pkg, m[1], strings.Split(m[2], " → ")})
		}
	}
	return rows
}

// Graph are the functions of some packages, and which names each uses.
type Graph struct {
	uses  map[string]map[string]bool // by "package.Type.method"
	named map[string][]string        // functions by their bare name
	sees  map[string]bool            // "package package": the first imports the second
	pkg   map[string]string          // of each function
	File  map[string]string          // where each is
}

// NewGraph reads the packages, which are named by their folders below internal. A call is
// one of every function of that name in the package itself and in those that it imports:
// what stands behind an interface is found so.
func NewGraph(folder string, packages ...string) (*Graph, error) {
	g := &Graph{uses: make(map[string]map[string]bool), named: make(map[string][]string), sees: make(map[string]bool), pkg: make(map[string]string), File: make(map[string]string)}
	linux := build.Default
	linux.GOOS, linux.GOARCH = "linux", "amd64"
	for _, name := range packages {
		found, err := linux.ImportDir(filepath.Join(folder, name), 0)
		if err != nil {
			return nil, err
		}
		for _, path := range found.Imports {
			if _, imported, ok := strings.Cut(path, "/internal/"); ok {
				g.sees[name+" "+imported] = true
			}
		}
		for _, file := range found.GoFiles {
			tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, name, file), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, decl := range tree.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					g.add(name, filepath.Join(name, file), f)
				}
			}
		}
	}
	return g, nil
}

func (g *Graph) add(pkg, file string, f *ast.FuncDecl) {
	key := pkg + "." + f.Name.Name
	if f.Recv != nil {
		key = fmt.Sprintf("%s.%s.%s", pkg, receiver(f.Recv.List[0].Type), f.Name.Name)
	}
	g.File[key], g.pkg[key] = file, pkg
	g.named[f.Name.Name] = append(g.named[f.Name.Name], key)
	g.uses[key] = make(map[string]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			g.uses[key][n.Sel.Name] = true
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok {
				g.uses[key][id.Name] = true
			}
		}
		return true
	})
}

// Calls reports whether one function calls another, itself.
func (g *Graph) Calls(from, to string) bool {
	if g.pkg[from] != g.pkg[to] && !g.sees[g.pkg[from]+" "+g.pkg[to]] {
		return false
	}
	for name := range g.uses[from] {
		if slices.Contains(g.named[name], to) {
			return true
		}
	}
	return false
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
