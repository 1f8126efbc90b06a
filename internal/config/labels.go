package config

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Reserved returns the label names that a file may not use: those of the series
// that tcpdiag_target_info is joined to, which the join would overwrite, and
// those that Prometheus sets.
func Reserved() []string {
	return []string{
		"cause", "container", "container_id", "framework", "kind", "limit", "listener", "name", "namespace", "netns", "outcome", "packet", "phase", "pid",
		"pod", "pod_uid", "port", "process", "protocol", "server", "source", "status",
		"instance", "job", "le", "quantile",
	}
}

// labels reads names and values. A value is taken as it is written: the version
// 1.10 stays 1.10.
func (p *parser) labels(n *yaml.Node) map[string]string {
	out := make(map[string]string)
	p.pairs(n, "labels", func(key, value *yaml.Node) {
		if !p.labelName(key) {
			return
		}
		text, ok := p.scalar(value, "label "+key.Value, "a text", "!!str", "!!int", "!!float", "!!bool", "!!timestamp")
		if ok && p.labelValue(resolve(value), key.Value, text) {
			out[key.Value] = text
		}
	})
	if len(out) > maxLabels {
		p.problemf(n.Line, "%d labels: give at most %d", len(out), maxLabels)
	}
	return out
}

func (p *parser) labelName(n *yaml.Node) bool {
	name := n.Value
	switch {
	case !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(name):
		p.problemf(n.Line, "label name %q: give letters, digits and underscores, not beginning with a digit", short(name))
	case strings.HasPrefix(name, "__"):
		p.problemf(n.Line, "label name %q: names that begin with __ are Prometheus's own", short(name))
	case len(name) > maxLabelName:
		p.problemf(n.Line, "label name %q: give at most %d letters", short(name), maxLabelName)
	case slices.Contains(Reserved(), name):
		p.problemf(n.Line, "label name %q is taken by tcpdiag or Prometheus: give another, such as %q", name, "app_"+name)
	default:
		return true
	}
	return false
}

func (p *parser) labelValue(n *yaml.Node, name, text string) bool {
	switch {
	case text == "":
		p.problemf(n.Line, "label %s is empty: give it a value, or leave it out", name)
	case len(text) > maxLabelValue:
		p.problemf(n.Line, "label %s is %d bytes long: give at most %d", name, len(text), maxLabelValue)
	case strings.ContainsFunc(text, unicode.IsControl):
		p.problemf(n.Line, "label %s %q: give it without control characters", name, short(text))
	default:
		return true
	}
	return false
}
