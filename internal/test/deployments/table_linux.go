package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
)

// row is a line of the table.
type row struct {
	Name, Truth, Said string
	Unknown           bool     // what is right to say here is that it is not known
	Wrong             []string // what was said and should not have been, or the other way round
	Skipped           string
}

func (r row) result() string {
	switch {
	case r.Skipped != "":
		return r.Skipped
	case len(r.Wrong) > 0:
		return "**wrong**: " + strings.Join(r.Wrong, "; ")
	case r.Unknown:
		return "unknown, and says so"
	}
	return "right"
}

func (r row) String() string {
	cell := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ") }
	return fmt.Sprintf("| %s | %s | %s | %s |", cell(r.Name), cell(r.Truth), cell(r.Said), cell(r.result()))
}

const heading = `# Unusual deployments

Written by ` + "`make deployments`" + `: each is a real server that is really overloaded, or is
healthy and looks overloaded; the truth is what Tomcat's own MBeans said at that moment.

| deployment | truth | tcpdiag says | so it is |
|---|---|---|---|
`

func runCases(ctx context.Context, k *kit, only *regexp.Regexp, table string) error {
	rows, failed := readRows(table), 0
	for _, c := range cases() {
		if !only.MatchString(c.name) {
			continue
		}
		r := runCase(ctx, k, c)
		fmt.Println(r)
		if len(r.Wrong) > 0 {
			failed++
		}
		rows[r.Name] = r.String()
	}
	var text strings.Builder
	text.WriteString(heading)
	for _, c := range cases() {
		if line := rows[c.name]; line != "" {
			text.WriteString(line + "\n")
		}
	}
	if err := os.WriteFile(table, []byte(text.String()), 0o600); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d wrong", failed)
	}
	return nil
}

func readRows(table string) map[string]string {
	rows := make(map[string]string)
	text, _ := os.ReadFile(table)
	for line := range strings.Lines(string(text)) {
		if cells := strings.SplitN(line, "|", 3); len(cells) == 3 {
			rows[strings.TrimSpace(cells[1])] = strings.TrimRight(line, "\n")
		}
	}
	return rows
}

func runCase(ctx context.Context, k *kit, c deployment) (r row) {
	dir, err := os.MkdirTemp(k.Dir, "case-")
	b := &bench{kit: k, ctx: ctx, dir: dir, row: row{Name: c.name}, nextPort: new(atomic.Int64)}
	defer func() {
		for i := len(b.cleanup) - 1; i >= 0; i-- {
			b.cleanup[i]()
		}
		var f failure
		if e, ok := recover().(error); ok && errors.As(e, &f) {
			b.row.Wrong = append(b.row.Wrong, "not run to its end: "+f.Error()+tail(filepath.Join(dir, "server.log")))
		}
		r = b.row
	}()
	b.must(err)
	c.run(b)
	return b.row
}

func tail(file string) string {
	text, _ := os.ReadFile(file)
	return " " + string(text[max(0, len(text)-600):])
}
