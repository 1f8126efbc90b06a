package properties

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// errNodes is a file that becomes too much once it is decoded, or once its
// aliases are followed: a few hundred bytes of nested ones would become
// billions.
var errNodes = bounded.TooLarge("more than 50,000 values or 200 levels")

// countMarks counts what can begin a node: the decoder makes some 200 bytes of
// each, so that this is asked first.
func countMarks(data []byte) int {
	n := 0
	for _, b := range data {
		switch b {
		case ',', '\n', '\r', '[', '{', ':', '-', '?', 0x85, 0xa8, 0xa9: // the last three end NEL, LS and PS
			n++
		}
	}
	return n
}

// ParseYAML reads the documents of a YAML file and flattens each to names the
// way Spring does (YamlProcessor, OriginTrackedYamlLoader).
func ParseYAML(data []byte, label string, q *Quota) (docs []*Document, err error) {
	if countMarks(data) > maxYAMLMarks {
		return nil, errNodes
	}
	defer func() {
		// The decoder is fed files that others wrote; a panic in it must not
		// end a long-running agent.
		if r := recover(); r != nil {
			docs, err = nil, errYAML
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	budget := maxYAMLNodes
	for {
		var node yaml.Node
		if err := dec.Decode(&node); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			return nil, malformedYAML(err)
		}
		f := flattener{doc: New(model.SourceFile, label, q), budget: &budget}
		if err := f.root(&node); err != nil {
			return nil, err
		}
		if q.Over {
			return nil, q.Err()
		}
		if len(f.doc.Names) > 0 {
			docs = append(docs, f.doc)
		}
		if len(docs) > MaxConfigDocs {
			return nil, ErrDocuments
		}
	}
}

// flattener turns one document's tree into names and values.
type flattener struct {
	doc    *Document
	budget *int
}

func (f *flattener) root(n *yaml.Node) error {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind != yaml.MappingNode {
		return nil // Spring keeps such a document under the name "document"
	}
	return f.mapping("", n, 0)
}

func (f *flattener) value(name string, n *yaml.Node, depth int) error {
	if len(name) > maxKey {
		return ErrProperty
	}
	if *f.budget--; *f.budget < 0 || depth > maxYAMLDepth {
		return errNodes
	}
	switch n.Kind {
	case yaml.AliasNode:
		return f.value(name, n.Alias, depth+1)
	case yaml.MappingNode:
		return f.mapping(name, n, depth)
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			f.doc.Put(name, "")
		}
		for i, e := range n.Content {
			if err := f.value(indexed(name, i), e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	text, isString := resolveScalar(n)
	f.doc.Put(name, text)
	f.doc.Floats[name] = !isString && yamlFloat(n.Value)
	return nil
}

// mapping walks a mapping. A key that occurs twice is an error, as it is for
// SnakeYAML with allowDuplicateKeys=false: the application would not start.
func (f *flattener) mapping(prefix string, n *yaml.Node, depth int) error {
	if *f.budget--; *f.budget < 0 || depth > maxYAMLDepth {
		return errNodes
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if isMerge(key) {
			continue
		}
		name := keyName(key)
		if len(name) > maxKey {
			return ErrProperty
		}
		if seen[name] {
			return fmt.Errorf("%w: line %d: a key stands twice", errYAML, key.Line)
		}
		seen[name] = true
		if err := f.value(joinName(prefix, name), n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	return f.merge(prefix, n, seen, depth)
}

// merge adds what "<<" brings in for keys that the mapping itself lacks.
func (f *flattener) merge(prefix string, n *yaml.Node, seen map[string]bool, depth int) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			continue
		}
		sources := []*yaml.Node{n.Content[i+1]}
		if s := target(sources[0]); s != nil && s.Kind == yaml.SequenceNode {
			sources = s.Content
		}
		for _, s := range sources {
			if err := f.mergeOne(prefix, target(s), seen, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *flattener) mergeOne(prefix string, n *yaml.Node, seen map[string]bool, depth int) error {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	if *f.budget--; *f.budget < 0 || depth > maxYAMLDepth {
		return errNodes
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := keyName(n.Content[i])
		if len(name) > maxKey {
			return ErrProperty
		}
		if isMerge(n.Content[i]) || seen[name] {
			continue
		}
		seen[name] = true
		if err := f.value(joinName(prefix, name), n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	return f.merge(prefix, n, seen, depth)
}

func isMerge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.Tag == "!!merge" }

func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// keyName is a key as a part of a name: a key that is no string is bracketed
// (YamlProcessor.asMap).
func keyName(key *yaml.Node) string {
	if key = target(key); key.Kind != yaml.ScalarNode {
		return "[]"
	}
	if text, isString := resolveScalar(key); !isString {
		return "[" + text + "]"
	}
	return key.Value
}

func joinName(prefix, name string) string {
	if prefix == "" || strings.HasPrefix(name, "[") {
		return prefix + name
	}
	return prefix + "." + name
}

// resolveScalar resolves a scalar to the text that Spring prints of it, by YAML 1.1, which is what SnakeYAML speaks
// (and go.yaml.in/yaml/v3 only in part): 010 is eight, yes is true, 1_000 is a
// number, 1:30 is ninety. isString is false for numbers, booleans and nulls.
func resolveScalar(n *yaml.Node) (text string, isString bool) {
	v := n.Value
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 ||
		n.Style&yaml.TaggedStyle != 0 && n.Tag == "!!str" {
		return v, true
	}
	switch v {
	case "", "~", "null", "Null", "NULL":
		return "", false
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return "true", false
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return "false", false
	}
	if number, ok := yamlInt(v); ok {
		return number, false
	}
	if yamlFloat(v) {
		return javaFloat(v), false
	}
	return v, true
}

// javaFloat prints a number as Double.toString does: 1e3 is 1000.0.
func javaFloat(v string) string {
	x, err := strconv.ParseFloat(strings.ReplaceAll(v, "_", ""), 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return v
	}
	if size := math.Abs(x); x != 0 && (size < 1e-3 || size >= 1e7) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'E', -1, 64), "E")
		n, _ := strconv.Atoi(exponent)
		return withPoint(mantissa) + "E" + strconv.Itoa(n)
	}
	return withPoint(strconv.FormatFloat(x, 'f', -1, 64))
}

func withPoint(digits string) string {
	if strings.Contains(digits, ".") {
		return digits
	}
	return digits + ".0"
}

// yamlInt evaluates an integer of YAML 1.1 (SnakeYAML's Resolver.INT).
func yamlInt(v string) (string, bool) {
	digits := strings.TrimLeft(v, "+-")
	if digits == "" || !isDigit(digits[0]) || len(v)-len(digits) > 1 || len(v) > 64 {
		return "", false
	}
	sign, base := "", 10
	if v[0] == '-' {
		sign = "-"
	}
	switch {
	case strings.Contains(digits, ":"):
		return sexagesimal(sign, digits)
	case strings.HasPrefix(digits, "0b"):
		digits, base = digits[2:], 2
	case strings.HasPrefix(digits, "0x"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	number, ok := new(big.Int).SetString(sign+strings.ReplaceAll(digits, "_", ""), base)
	if !ok {
		return "", false
	}
	return number.String(), true
}

// sexagesimal evaluates 1:30 and 190:20:30, numbers of base 60.
func sexagesimal(sign, digits string) (string, bool) {
	parts := strings.Split(strings.ReplaceAll(digits, "_", ""), ":")
	sum := new(big.Int)
	for i, part := range parts {
		n, ok := new(big.Int).SetString(part, 10)
		if !ok || i == 0 && part[0] == '0' || i > 0 && (len(part) > 2 || n.Cmp(big.NewInt(59)) > 0) {
			return "", false
		}
		sum.Mul(sum, big.NewInt(60)).Add(sum, n)
	}
	if sign == "-" {
		sum.Neg(sum)
	}
	return sum.String(), true
}

// yamlFloat says that a plain scalar is a floating point number.
func yamlFloat(v string) bool {
	body := strings.TrimLeft(v, "+-")
	switch strings.ToLower(body) {
	case ".inf", ".nan":
		return true
	}
	if body == "" || len(v)-len(body) > 1 || strings.Trim(body, "0123456789_.eE+-") != "" || !strings.ContainsAny(body, ".eE") {
		return false
	}
	_, err := strconv.ParseFloat(strings.ReplaceAll(v, "_", ""), 64)
	return err == nil
}
