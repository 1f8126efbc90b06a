package structure

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// stumbles are words that readers stumble over. Plain ones instead: reports, shows,
// distinguishes; rarely; expensive; this many; at most; closed; snapshot, scan, sample.
var stumbles = regexp.MustCompile(`(?i)\b(tells? (of|apart)|told apart|seldom|dear(er|est)?|` +
	`so many|in vain|rosters?|vanish(es|ing)|ha(s|ve) vanished|upon|hence|foretold|` +
	`(two|both|either|every|each|another|single|no more) looks?)\b`)

// unsaid are words that strings leave out as well: what the program says is read by
// more people than its comments. Plain ones: is unknown; again; this long; lasts,
// continues; up to; reports whether; snapshots.
var unsaid = regexp.MustCompile(`(?i)\b(cannot be told|anew|so long|goes on|as far as|tells? whether|(one|two|last|latest|the) looks?)\b`)

// Words are the places below a folder where a comment of a Go file, a string of one
// that is no test, or a page that has a name of which written is true, is not in plain words: "path:line: words".
// Folders of test data are left out, unless it is the folder itself.
func Words(folder string, written func(path string) bool) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil // what other tests are making, or another user made
		case err != nil:
			return err
		case d.IsDir() && path != folder && leftOut(d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(path, ".go"):
			return inComments(path, &found)
		case strings.HasSuffix(path, ".md") && written(path):
			return inPage(path, &found)
		}
		return nil
	})
	return found, err
}

// leftOut says which folders are not the project's own text: caches, what is built,
// and what tests read.
func leftOut(name string) bool {
	return name == "testdata" || name == "bin" || name == "dist" || strings.HasPrefix(name, ".")
}

// inComments adds what the comments of a Go file have.
func inComments(path string, found *[]string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			inText(path, fset.Position(c.Pos()).Line, c.Text, found, stumbles, unsaid)
		}
	}
	if !strings.HasSuffix(path, "_test.go") && !strings.Contains(filepath.ToSlash(path), "internal/test/") {
		inStrings(path, fset, file, found)
	}
	return nil
}

// inStrings adds what the strings of a Go file have.
func inStrings(path string, fset *token.FileSet, file *ast.File, found *[]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING {
			inText(path, fset.Position(s.Pos()).Line, s.Value, found, unsaid)
		}
		return true
	})
}

// inPage adds what a page has.
func inPage(path string, found *[]string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		inText(path, 1, string(text), found, stumbles, unsaid)
	}
	return err
}

// inText adds what a text has that begins at a line of a file.
func inText(path string, line int, text string, found *[]string, unwanted ...*regexp.Regexp) {
	for i, l := range strings.Split(text, "\n") {
		for _, re := range unwanted {
			for _, words := range re.FindAllString(l, -1) {
				*found = append(*found, fmt.Sprintf("%s:%d: %s", path, line+i, words))
			}
		}
	}
}
