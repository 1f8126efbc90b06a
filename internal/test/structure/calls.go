package structure

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
)

// Call is a use of a function of one file in another file of its package.
type Call struct {
	From, To string // files
	Caller   string // function
	Callee   string
}

func (c Call) String() string {
	return fmt.Sprintf("%s: %s uses %s of %s", c.From, c.Caller, c.Callee, c.To)
}

// Calls are the uses of functions and methods between the files of the package
// in a folder, as it is built for Linux, its tests left out. A function that is
// named without being called counts: it is called later.
func Calls(folder string) ([]Call, error) {
	p, err := load(folder)
	if err != nil {
		return nil, err
	}
	var calls []Call
	for _, file := range p.files {
		for _, decl := range file.Decls {
			calls = append(calls, p.callsOf(decl)...)
		}
	}
	slices.SortFunc(calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Callee, b.Callee))
	})
	return slices.Compact(calls), nil
}

// pkg is a package's files and what its names mean.
type pkg struct {
	fset  *token.FileSet
	files []*ast.File
	uses  map[*ast.Ident]types.Object
}

func load(folder string) (*pkg, error) {
	linux := build.Default
	linux.GOOS, linux.GOARCH = "linux", "amd64"
	found, err := linux.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	p := &pkg{fset: token.NewFileSet(), uses: make(map[*ast.Ident]types.Object)}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(p.fset, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, file)
	}
	// Names of other packages stay unknown: only those of this one matter, and
	// what is imported need not be compiled.
	conf := types.Config{Importer: nothing{}, Error: func(error) {}}
	_, _ = conf.Check(folder, p.fset, p.files, &types.Info{Uses: p.uses, Selections: nil})
	return p, nil
}

// nothing imports nothing.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not imported", path)
}

// callsOf are those out of one declaration.
func (p *pkg) callsOf(decl ast.Decl) (calls []Call) {
	from := p.file(decl.Pos())
	ast.Inspect(decl, func(n ast.Node) bool {
		ident, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		f, ok := p.uses[ident].(*types.Func)
		if !ok || f.Pkg() == nil || f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
			return true
		}
		if to := p.file(f.Pos()); to != from {
			calls = append(calls, Call{From: from, To: to, Caller: nameOf(decl), Callee: f.Name()})
		}
		return true
	})
	return calls
}

func (p *pkg) file(pos token.Pos) string { return filepath.Base(p.fset.Position(pos).Filename) }

func nameOf(decl ast.Decl) string {
	if f, ok := decl.(*ast.FuncDecl); ok {
		return f.Name.Name
	}
	return "a declaration"
}
