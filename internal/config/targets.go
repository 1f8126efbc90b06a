package config

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

func (p *parser) targets(n *yaml.Node) (out []Target) {
	if null(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		p.problemf(n.Line, `targets: give a list, each entry as "- port: 8080"%s`, got(n))
		return nil
	}
	for _, entry := range n.Content {
		out = append(out, p.target(resolve(entry)))
	}
	return out
}

func (p *parser) target(n *yaml.Node) Target {
	t := Target{Line: n.Line}
	if n.Kind != yaml.MappingNode {
		p.problemf(n.Line, `a target: give keys and values, such as "- port: 8080"%s`, got(n))
		return t
	}
	before := len(p.problems)
	var one, many, process bool // even if what they say is wrong
	p.mapping(n, "a target", []field{
		{"port", func(n *yaml.Node) { one, t.Ports = true, append(t.Ports, p.port(n, "port")...) }},
		{"ports", func(n *yaml.Node) { many, t.Ports = true, append(t.Ports, p.portList(n)...) }},
		{"pid", func(n *yaml.Node) { process, t.PID = true, p.pid(n) }},
		{"labels", func(n *yaml.Node) { t.Labels = p.labels(n) }},
		{"limits", func(n *yaml.Node) { t.Limits = p.limits(n) }},
		{"actuator", func(n *yaml.Node) { t.Actuator = p.url(n, "actuator") }},
	})
	switch {
	case one && many:
		p.problemf(n.Line, `a target has both "port" and "ports": give one of them`)
	case !one && !many && !process && len(p.problems) == before:
		p.problemf(n.Line, `a target names nothing: give it a "port", "ports" or a "pid"`)
	}
	return t
}

func (p *parser) port(n *yaml.Node, key string) []uint16 {
	v := p.between(n, key, "a whole number from 1 to 65535", func(v int64) bool { return v >= 1 && v <= 65535 })
	if v == nil {
		return nil
	}
	return []uint16{uint16(v.Value)}
}

func (p *parser) portList(n *yaml.Node) (out []uint16) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.problemf(n.Line, `ports: give a list, such as "[8080, 8443]"`)
		return nil
	}
	for _, entry := range n.Content {
		out = append(out, p.port(entry, "ports")...)
	}
	return out
}

func (p *parser) pid(n *yaml.Node) int {
	v := p.between(n, "pid", "a process id, a whole number from 1", func(v int64) bool { return v >= 1 })
	if v == nil {
		return 0
	}
	return v.Value
}

// ports refuses what would have two meanings: a port in two targets, unless
// each names a process of its own.
func (p *parser) ports(targets []Target) {
	type claim struct{ pid, line int }
	claims := make(map[uint16][]claim)
	total := 0
	for _, t := range targets {
		ports := t.Ports
		if len(ports) == 0 {
			ports = []uint16{0} // all of the process's
		}
		total += len(ports)
		for _, port := range ports {
			before := claims[port]
			i := slices.IndexFunc(before, func(c claim) bool { return c.pid == t.PID || (port != 0 && (c.pid == 0 || t.PID == 0)) })
			switch {
			case i < 0:
				claims[port] = append(before, claim{t.PID, t.Line})
			case port == 0 && t.PID == 0: // said already: it names nothing
			case port == 0:
				p.problemf(t.Line, "pid %d is named twice (first in the target on line %d)", t.PID, before[i].line)
			default:
				p.problemf(t.Line, "port %d is named twice (first in the target on line %d)", port, before[i].line)
			}
		}
	}
	if total > maxPorts {
		p.problemf(0, "%d ports in targets: give at most %d", total, maxPorts)
	}
}
