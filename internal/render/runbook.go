package render

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Topic is a cause or a finding with what to do about it, as the runbook has it.
type Topic struct {
	Name string // "max_connections"
	Text string // Markdown: paragraphs, **labels**, `code`
}

// Topics are the sections of a runbook whose heading is a cause or a finding.
func Topics(page string) (out []Topic) {
	for _, section := range strings.Split("\n"+page, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if regexp.MustCompile(`^[a-z_]+$`).MatchString(name) {
			out = append(out, Topic{name, strings.TrimSpace(text)})
		}
	}
	return out
}

// Runbook writes what is to be known of a topic.
func Runbook(w io.Writer, t Topic, o TextOptions) error {
	s := newScreen(o)
	s.line(span{t.Name, bold})
	for _, paragraph := range strings.Split(t.Text, "\n\n") {
		s.blank()
		for _, part := range labelled(paragraph) {
			s.paragraph(answerIndent, marked(part)...)
		}
	}
	return s.write(w, "runbook")
}

// TopicList writes each topic with its first sentence.
func TopicList(w io.Writer, topics []Topic, o TextOptions) error {
	s := newScreen(o)
	for _, t := range topics {
		text, _ := firstSentence(strings.Join(strings.Fields(t.Text), " "))
		text = strings.TrimPrefix(text, "**Seen:** ")
		s.row(span{t.Name, bold}, marked(text)...)
	}
	s.blank()
	s.paragraph(0, span{"tcpdiag explain CAUSE prints what to check, what to change and what does not help.", dim})
	return s.write(w, "topics")
}

// labelled begins a line with each label, and joins the lines of a sentence. What is
// indented stays as it is.
func labelled(paragraph string) []string {
	joined := strings.Join(strings.Fields(paragraph), " ")
	var out []string
	at := 0
	for _, m := range regexp.MustCompile(`(?:^| )\*\*[^*]+:\*\*`).FindAllStringIndex(joined, -1) {
		if m[0] > at {
			out = append(out, joined[at:m[0]])
		}
		at = m[0]
	}
	return append(out, joined[at:])
}

// marked is a text without Markdown's marks, its label bold.
func marked(text string) []span {
	text = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`).ReplaceAllString(text, "$1") // a link's words
	label, rest, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "**"), ":**")
	bare := strings.NewReplacer("**", "", "`", "")
	if !found {
		return []span{{text: bare.Replace(text)}}
	}
	return []span{{label + ":", bold}, {text: bare.Replace(rest)}}
}

// Sentences writes each from the beginning of a line, within the screen's width.
func Sentences(w io.Writer, text []string, o TextOptions) error {
	s := newScreen(o)
	for _, one := range text {
		s.paragraph(0, span{text: printable(one)})
	}
	return s.write(w, "sentences")
}

func (s *screen) write(w io.Writer, what string) error {
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("render: %s: %w", what, err)
	}
	return nil
}
