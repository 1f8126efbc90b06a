package assistant

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxComplaint bounds what is said of a wrong request.
const maxComplaint = 600

// complaints makes one clear line of what the protocol's library says of arguments that
// are not of a tool's schema: it repeats the arguments themselves.
func (s *server) complaints(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		out, err := next(ctx, method, req)
		result, ok := out.(*mcp.CallToolResult)
		call, isCall := req.(*mcp.CallToolRequest)
		if !ok || !isCall || result == nil || !result.IsError {
			return out, err
		}
		for _, c := range result.Content {
			if t, ok := c.(*mcp.TextContent); ok {
				t.Text = complaint(s.inputs[call.Params.Name], t.Text)
			}
		}
		return out, err
	}
}

func complaint(input *jsonschema.Schema, text string) string {
	if of := ofArguments.FindStringSubmatch(text); of != nil && input != nil {
		return argument(input, of[1])
	}
	if len(text) > maxComplaint {
		text = strings.ToValidUTF8(text[:maxComplaint], "") + "…"
	}
	return plain(text)
}

var (
	ofArguments = regexp.MustCompile(`(?s)^(?:validating "arguments": |unmarshaling|json: )(.*)$`)
	ofProperty  = regexp.MustCompile(`/properties/([a-z_]+): [a-zA-Z]+:`)
	isMissing   = regexp.MustCompile(`required: missing properties: \["([a-z_]+)"`)
)

// argument says what is wrong with the arguments, by their schema.
func argument(input *jsonschema.Schema, text string) string {
	if m := ofProperty.FindStringSubmatch(text); m != nil && input.Properties[m[1]] != nil {
		return m[1] + ": give " + wanted(input.Properties[m[1]])
	}
	if m := isMissing.FindStringSubmatch(text); m != nil && input.Properties[m[1]] != nil {
		return m[1] + " is missing: give " + wanted(input.Properties[m[1]])
	}
	return "arguments: one of them is none of this tool, or not of its type; its input schema has those that there are"
}

func wanted(p *jsonschema.Schema) string {
	switch {
	case len(p.Enum) > 0:
		words := make([]string, len(p.Enum))
		for i, v := range p.Enum {
			words[i] = fmt.Sprint(v)
		}
		return "one of " + strings.Join(words, ", ")
	case p.Minimum != nil && p.Maximum != nil && p.Type == "integer":
		return fmt.Sprintf("a whole number from %.0f to %.0f", *p.Minimum, *p.Maximum)
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("a number from %v to %v", *p.Minimum, *p.Maximum)
	case p.Type == "boolean":
		return "true or false"
	}
	return "a " + p.Type
}
