package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Error is everything that is wrong with a file, in the order of its lines.
type Error struct {
	File     string
	Problems []Problem
}

// Problem is one thing that is wrong. It names the thing, the value and the
// remedy.
type Problem struct {
	Line int // 0: the file as a whole
	Text string
}

// Error has a line for each problem: "tcpdiag.yml:7: unknown key …".
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		position := e.File
		if p.Line > 0 {
			position += ":" + strconv.Itoa(p.Line)
		}
		lines[i] = position + ": " + p.Text
	}
	return strings.Join(lines, "\n")
}

// parser collects the problems.
type parser struct{ problems []Problem }

func (p *parser) problemf(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{line, fmt.Sprintf(format, args...)})
}

// err is nil when nothing is wrong.
func (p *parser) err(file string) error {
	if len(p.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
	return &Error{File: file, Problems: p.problems}
}

// syntax notes what the YAML parser says, which names the line in its words:
// "yaml: line 3: did not find expected key".
func (p *parser) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	p.problemf(line, "not valid YAML: %s", text)
}
