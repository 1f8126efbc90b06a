package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxRun bounds the bytes of a document that is read back: a course of an hour is 1 MiB.
const maxRun = 64 << 20

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
	if err := json.Unmarshal(content, &doc); err != nil || doc.Schema != RunSchema {
		return nil, fmt.Errorf("%q: %w", name, errNotRun)
	}
	return &doc, nil
}
