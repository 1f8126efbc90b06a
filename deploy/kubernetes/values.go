package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What says what a value is stands in values.yaml, beside its default: the comment, and a line
// "@schema" of what the default alone does not tell. Of these the schema is made, and the README's table.
const (
	valuesFile  = chartFolder + "/values.yaml"
	schemaFile  = chartFolder + "/values.schema.json"
	chartReadme = chartFolder + "/README.md"
	annotation  = "@schema "
)

// definitions are of values that are Kubernetes' own, or several times the same.
//
//go:embed definitions.json
var definitions []byte

// value is one of values.yaml.
type value struct {
	path     string // "image.tag"
	text     string // the comment, its paragraphs apart
	schema   map[string]any
	initial  any
	children []*value
}

// chartValues reads values.yaml with its comments.
func chartValues(text []byte) ([]*value, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("%d documents", len(doc.Content))
	}
	return valuesOf("", doc.Content[0])
}

func valuesOf(parent string, node *yaml.Node) ([]*value, error) {
	var out []*value
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, of := node.Content[i], node.Content[i+1]
		v := &value{path: strings.TrimPrefix(parent+"."+key.Value, ".")}
		if err := of.Decode(&v.initial); err != nil {
			return nil, fmt.Errorf("%s: %w", v.path, err)
		}
		if err := v.comment(key.HeadComment); err != nil {
			return nil, fmt.Errorf("%s: %w", v.path, err)
		}
		if _, whole := v.schema["$ref"]; of.Kind == yaml.MappingNode && len(of.Content) > 0 && !whole {
			var err error
			if v.children, err = valuesOf(v.path, of); err != nil {
				return nil, err
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// comment takes what stands right above the key.
func (v *value) comment(head string) error {
	blocks := strings.Split(head, "\n\n")
	var text []string
	for line := range strings.Lines(blocks[len(blocks)-1]) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		if rest, ok := strings.CutPrefix(line, annotation); ok {
			if err := yaml.Unmarshal([]byte(rest), &v.schema); err != nil {
				return fmt.Errorf("%s%s: %w", annotation, rest, err)
			}
			continue
		}
		text = append(text, line)
	}
	v.text = strings.TrimSpace(strings.Join(text, "\n"))
	return nil
}

// json is the value's schema.
func (v *value) json() (map[string]any, error) {
	out := maps.Clone(v.schema)
	if out == nil {
		out = map[string]any{}
	}
	if v.text != "" {
		out["description"] = v.brief()
	}
	if v.children != nil {
		properties, err := propertiesOf(v.children)
		if err != nil {
			return nil, err
		}
		out["type"], out["additionalProperties"], out["properties"] = "object", false, properties
		return out, nil
	}
	out["default"] = v.initial
	if out["$ref"] != nil || out["enum"] != nil || out["type"] != nil {
		return out, nil
	}
	switch v.initial.(type) {
	case string:
		out["type"] = "string"
	case bool:
		out["type"] = "boolean"
	case int:
		out["type"] = "integer"
	default:
		return nil, fmt.Errorf("%s: its default %v does not tell what it may be: a line %s", v.path, v.initial, annotation)
	}
	return out, nil
}

func propertiesOf(all []*value) (map[string]any, error) {
	out := make(map[string]any, len(all))
	for _, v := range all {
		schema, err := v.json()
		if err != nil {
			return nil, err
		}
		out[v.path[strings.LastIndex(v.path, ".")+1:]] = schema
	}
	return out, nil
}

// renderSchema is what values.schema.json should hold.
func renderSchema(all []*value) (string, error) {
	properties, err := propertiesOf(all)
	if err != nil {
		return "", err
	}
	properties["global"] = map[string]any{"type": "object", "description": "Helm gives it to every chart; not used."}
	var shared map[string]any
	if err := json.Unmarshal(definitions, &shared); err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the tcpdiag chart", "$comment": "made of values.yaml by make manifests",
		"type": "object", "additionalProperties": false, "properties": properties, "definitions": shared,
	})
	return out.String(), err
}

var repoPath = regexp.MustCompile(`\b(docs|deploy|dashboards)/[\w./-]*\w`)

// brief is the comment's first sentence.
func (v *value) brief() string {
	paragraph, _, _ := strings.Cut(v.text, "\n\n")
	text := strings.Join(strings.Fields(paragraph), " ")
	for i := range len(text) {
		if text[i] == '.' && (i+1 == len(text) || text[i+1] == ' ' && i > 0 && text[i-1] != '.') {
			return text[:i+1]
		}
	}
	return text
}

// renderTable is the README's table.
func renderTable(all []*value) string {
	var out strings.Builder
	out.WriteString("| value | default | |\n|---|---|---|\n")
	var add func(all []*value)
	add = func(all []*value) {
		for _, v := range all {
			if v.children != nil {
				add(v.children)
				continue
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", v.path, v.shown(), linked(strings.ReplaceAll(v.brief(), "|", `\|`)))
		}
	}
	add(all)
	return out.String()
}

// shown is the default as the table has it: what is long stands in values.yaml.
func (v *value) shown() string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v.initial) != nil || out.Len() > 40 {
		return "[see there](values.yaml)"
	}
	return "`" + strings.TrimSpace(out.String()) + "`"
}

// linked makes links of the repository's files.
func linked(text string) string {
	return repoPath.ReplaceAllStringFunc(text, func(path string) string {
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			return path
		}
		return "[" + path + "](../../../" + path + ")"
	})
}

// Where the table stands in the README.
const (
	tableBegins = "<!-- made of values.yaml by make manifests -->\n"
	tableEnds   = "<!-- end -->\n"
)

// renderReadme is the README with the table of these values in it.
func renderReadme(readme string, all []*value) (string, error) {
	before, rest, ok := strings.Cut(readme, tableBegins)
	_, after, ended := strings.Cut(rest, tableEnds)
	if !ok || !ended {
		return "", fmt.Errorf("%s: no place for the table", chartReadme)
	}
	return before + tableBegins + renderTable(all) + tableEnds + after, nil
}

// ofValues are the files that are made of values.yaml, by their paths.
func ofValues() (map[string]string, error) {
	text, err := os.ReadFile(valuesFile)
	if err != nil {
		return nil, err
	}
	all, err := chartValues(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", valuesFile, err)
	}
	schema, err := renderSchema(all)
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(chartReadme)
	if err != nil {
		return nil, err
	}
	written, err := renderReadme(string(readme), all)
	return map[string]string{schemaFile: schema, chartReadme: written}, err
}

func writeOfValues() error {
	files, err := ofValues()
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
