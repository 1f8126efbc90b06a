package structure

import (
	"go/ast"
)

// Size is how much there is of a type.
type Size struct{ Fields, Methods int }

// Sizes are those of the types of the package in a folder. A field that embeds
// another struct counts as one.
func Sizes(folder string) (map[string]Size, error) {
	p, err := load(folder)
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]Size)
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					size := sizes[n.Name.Name]
					size.Fields = s.Fields.NumFields()
					sizes[n.Name.Name] = size
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					size := sizes[receiver(n.Recv.List[0].Type)]
					size.Methods++
					sizes[receiver(n.Recv.List[0].Type)] = size
				}
			}
			return true
		})
	}
	return sizes, nil
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
