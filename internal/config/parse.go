package config

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// Parse checks a file's contents; name is for the errors. An empty file, or
// one of comments only, says nothing and is fine.
func Parse(name string, data []byte) (*File, error) {
	var p parser
	if len(data) > maxBytes {
		p.problemf(0, "the file is larger than %d bytes", maxBytes)
		return nil, p.err(name)
	}
	file := &File{}
	if root := p.document(data); root != nil {
		p.file(root, file)
		p.ports(file.Targets)
	}
	if err := p.err(name); err != nil {
		return nil, err
	}
	return file, nil
}

// document is the only one of the stream, nil when it is empty or broken.
func (p *parser) document(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := dec.Decode(&first); err != nil {
		if !errors.Is(err, io.EOF) {
			p.syntax(err)
		}
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		p.problemf(second.Line, "a second document begins: give one")
	case !errors.Is(err, io.EOF):
		p.syntax(err)
		return nil
	}
	if first.Kind != yaml.DocumentNode || len(first.Content) == 0 || null(first.Content[0]) {
		return nil
	}
	return first.Content[0]
}

func (p *parser) file(n *yaml.Node, f *File) {
	p.mapping(n, "the file", []field{
		{"targets", func(n *yaml.Node) { f.Targets = p.targets(n) }},
		{"all", func(n *yaml.Node) { f.All = p.boolean(n, "all") }},
		{"all_namespaces", func(n *yaml.Node) { f.AllNamespaces = p.boolean(n, "all_namespaces") }},
		{"max_listeners", func(n *yaml.Node) { f.MaxListeners = value(p.number(n, "max_listeners", 1)) }},
		{"sample_interval", func(n *yaml.Node) {
			f.SampleInterval = p.duration(n, "sample_interval", MinSampleInterval, MaxSampleInterval)
		}},
		{"scan_interval", func(n *yaml.Node) {
			f.ScanInterval = p.duration(n, "scan_interval", MinScanInterval, MaxScanInterval)
		}},
		{"labels", func(n *yaml.Node) { f.Labels = p.labels(n) }},
		{"limits", func(n *yaml.Node) { f.Limits = p.limits(n) }},
		{"actuator", func(n *yaml.Node) { f.Actuator = p.url(n, "actuator") }},
	})
}

func (p *parser) limits(n *yaml.Node) (l Limits) {
	p.mapping(n, "limits", []field{
		{"max_connections", func(n *yaml.Node) { l.MaxConnections = p.number(n, "max_connections", -1) }},
		{"accept_count", func(n *yaml.Node) { l.AcceptCount = p.number(n, "accept_count", 1) }},
		{"max_threads", func(n *yaml.Node) { l.MaxThreads = p.number(n, "max_threads", 1) }},
	})
	return l
}

// value is a number without its line.
func value(n *Number) *int {
	if n == nil {
		return nil
	}
	return &n.Value
}
