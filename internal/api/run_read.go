package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxRun bounds the bytes of a document that is read back: a course of an hour is 1 MiB.
const maxRun = 64 << 20

// runSchemas begin the names of all versions.
const runSchemas = "tcpdiag.run/"

var errNotRun = errors.New("not a result of tcpdiag run (write one with --json)")

// ReadRun reads what an earlier run wrote.
func ReadRun(name string) (*Run, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxRun))
	if err != nil {
		return nil, err
	}
	var doc Run
	err = json.Unmarshal(content, &doc)
	switch {
	case doc.Schema == RunSchema && err == nil:
		return &doc, nil
	case strings.HasPrefix(doc.Schema, runSchemas):
		return nil, fmt.Errorf("%q is of schema %s, and this version reads %s", name, model.Printable(doc.Schema), RunSchema)
	case err != nil && len(content) > 0 && doc.Schema == "":
		return nil, fmt.Errorf("%q: %w: %w", name, errNotRun, err)
	}
	return nil, fmt.Errorf("%q: %w", name, errNotRun)
}
