package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const marker = "<!-- by make waits -->"

// write puts the table behind the marker of its file, none for "".
func write(file string, rows []row) error {
	var table strings.Builder
	table.WriteString("\n\n| case | what happened | what it said | |\n|---|---|---|---|\n")
	failed := false
	for _, r := range rows {
		verdict := "right"
		if r.Wrong != "" {
			verdict, failed = "**wrong**: "+r.Wrong, true
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", r.Name, r.Truth, r.Said, verdict)
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		before, _, ok := strings.Cut(string(text), marker)
		if !ok {
			return fmt.Errorf("%s has no %s", file, marker)
		}
		if err := os.WriteFile(file, []byte(before+marker+table.String()), 0o644); err != nil {
			return err
		}
	}
	if failed {
		return errors.New("a case is wrong")
	}
	return nil
}
