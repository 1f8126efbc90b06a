package properties

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
)

// What is wrong with a file's form. A parser's own words are not passed on:
// they repeat parts of the file.
var (
	errYAML       = errors.New("malformed YAML")
	errProperties = errors.New("malformed properties")
	errXML        = errors.New("malformed XML")
	errJSON       = errors.New("malformed JSON")
	ErrExpression = errors.New("malformed profile expression")
)

// malformedYAML keeps the line's number, which the decoder has in its text.
func malformedYAML(err error) error {
	if line := regexp.MustCompile(`^yaml: line (\d{1,9})`).FindStringSubmatch(err.Error()); line != nil {
		return fmt.Errorf("%w: line %s", errYAML, line[1])
	}
	return errYAML
}

func malformedXML(err error) error {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w: line %d", errXML, syntax.Line)
	}
	return errXML
}

func malformedJSON(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w: byte %d", errJSON, syntax.Offset)
	}
	return errJSON
}
