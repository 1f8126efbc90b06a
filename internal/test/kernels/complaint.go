package main

import (
	"regexp"
	"strings"
)

// complaint is what testify printed of an assertion that did not hold.
type complaint struct {
	error, messages []string
	into            *[]string
}

var (
	// complaintLine begins a part of it: "        	Error:      	Not equal: ".
	complaintLine = regexp.MustCompile(`^\s+(Error Trace|Error|Test|Messages):\s+(.*)$`)
	// continued is a further line of a part.
	continued = regexp.MustCompile(`^\s+\t\s{8,}\t(.*)$`)
	// abort is what ends all tests of a binary.
	abort = regexp.MustCompile(`^(panic: .*|fatal error: .*)$`)
)

// read takes a line of a test's output.
func (c *complaint) read(line string) {
	if m := abort.FindStringSubmatch(line); m != nil {
		*c = complaint{error: m[1:]}
	} else if m := complaintLine.FindStringSubmatch(line); m != nil {
		c.begin(m[1], m[2])
	} else if m := continued.FindStringSubmatch(line); m != nil && c.into != nil {
		c.add(m[1])
	}
}

func (c *complaint) begin(part, text string) {
	switch part {
	case "Error Trace":
		*c = complaint{}
	case "Error":
		c.into = &c.error
		c.add(text)
	case "Messages":
		c.into = &c.messages
		c.add(text)
	default:
		c.into = nil
	}
}

// add takes a line but for those of a comparison that follow "Diff:", after an empty
// one.
func (c *complaint) add(line string) {
	if line = strings.TrimSpace(line); line == "" {
		c.into = nil
		return
	}
	*c.into = append(*c.into, line)
}

// mostOfAComplaint keeps a line of the page readable; the log has all.
const mostOfAComplaint = 300

// text is one line, which can stand in a table.
func (c *complaint) text() string {
	text := strings.Join(c.error, " ")
	if len(c.messages) > 0 {
		text += " (" + strings.Join(c.messages, " ") + ")"
	}
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "/")
	if runes := []rune(text); len(runes) > mostOfAComplaint {
		text = string(runes[:mostOfAComplaint]) + " …"
	}
	return text
}
