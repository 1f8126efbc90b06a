package configdata

import (
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
)

// activationContext is what decides whether a document applies.
type activationContext struct {
	cloud    string   // cloud platform, "NONE" when there is none
	known    bool     // the profiles are known
	profiles []string // accepted ones, in order
}

// activation is a document's spring.config.activate.
type activation struct {
	profiles []string // expressions, one of which must match; none: always
	cloud    string   // on-cloud-platform

	decided *activationContext // for which applies was worked out
	applies bool
}

func (a *activation) active(ctx *activationContext) bool {
	if ctx == nil || !ctx.known {
		return a.matches(ctx)
	}
	if a.decided != ctx {
		a.decided, a.applies = ctx, a.matches(ctx)
	}
	return a.applies
}

func (a *activation) matches(ctx *activationContext) bool {
	if ctx == nil || a.cloud != "" && !strings.EqualFold(a.cloud, ctx.cloud) {
		return false
	}
	if len(a.profiles) == 0 {
		return true
	}
	return ctx.known && slices.ContainsFunc(a.profiles, func(expr string) bool {
		ok, err := matchProfiles(expr, ctx.profiles)
		return ok && err == nil
	})
}

// String is the condition for people.
func (a *activation) String() string {
	var parts []string
	if len(a.profiles) > 0 {
		parts = append(parts, "profile "+strings.Join(a.profiles, " or "))
	}
	if a.cloud != "" {
		parts = append(parts, "on "+a.cloud)
	}
	return strings.Join(parts, ", ")
}

// maxExpression is the bytes of a profile expression.
const maxExpression = 1024

// matchProfiles evaluates a profile expression: names with "!", "&", "|" and
// parentheses; "&" and "|" may not be mixed without them (ProfilesParser).
func matchProfiles(expr string, active []string) (bool, error) {
	if len(expr) > maxExpression {
		return false, properties.ErrExpression
	}
	p := &profileParser{tokens: profileTokens(expr), active: active}
	ok, err := p.expression(0)
	switch {
	case err != nil:
		return false, err
	case p.pos < len(p.tokens):
		return false, properties.ErrExpression
	}
	return ok, nil
}

func profileTokens(expr string) []string {
	var tokens []string
	word := 0
	flush := func(end int) {
		if t := strings.TrimSpace(expr[word:end]); t != "" {
			tokens = append(tokens, t)
		}
	}
	for i := range len(expr) {
		if strings.IndexByte("()&|!", expr[i]) >= 0 {
			flush(i)
			tokens = append(tokens, expr[i:i+1])
			word = i + 1
		}
	}
	flush(len(expr))
	return tokens
}

type profileParser struct {
	tokens []string
	pos    int
	active []string
}

func (p *profileParser) next() string {
	if p.pos >= len(p.tokens) {
		return ""
	}
	p.pos++
	return p.tokens[p.pos-1]
}

// maxExpressionDepth bounds the parentheses and negations within each other.
const maxExpressionDepth = 50

// expression reads terms joined by one kind of operator.
func (p *profileParser) expression(depth int) (bool, error) {
	if depth > maxExpressionDepth {
		return false, bounded.ErrTooLarge
	}
	result, err := p.term(depth)
	operator := ""
	for err == nil && p.pos < len(p.tokens) && p.tokens[p.pos] != ")" {
		op := p.next()
		if op != "&" && op != "|" || operator != "" && op != operator {
			return false, properties.ErrExpression
		}
		operator = op
		var right bool
		right, err = p.term(depth)
		if op == "&" {
			result = result && right
		} else {
			result = result || right
		}
	}
	return result, err
}

func (p *profileParser) term(depth int) (bool, error) {
	switch t := p.next(); t {
	case "!":
		if depth > maxExpressionDepth {
			return false, bounded.ErrTooLarge
		}
		ok, err := p.term(depth + 1)
		return !ok, err
	case "(":
		ok, err := p.expression(depth + 1)
		if err == nil && p.next() != ")" {
			err = properties.ErrExpression
		}
		return ok, err
	case "", ")", "&", "|":
		return false, properties.ErrExpression
	default:
		return slices.Contains(p.active, t), nil
	}
}

// cloudPlatform is the platform that Spring Boot detects (CloudPlatform), from
// variables of the environment, or the one that spring.main.cloud-platform forces.
func cloudPlatform(forced string, env *properties.Document) string {
	if forced != "" {
		return strings.ToUpper(forced)
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := env.Values[n]; !ok {
				return false
			}
		}
		return true
	}
	switch {
	case has("VCAP_APPLICATION"), has("VCAP_SERVICES"):
		return "CLOUD_FOUNDRY"
	case has("DYNO"):
		return "HEROKU"
	case has("HC_LANDSCAPE"):
		return "SAP"
	case has("NOMAD_ALLOC_ID"):
		return "NOMAD"
	case onKubernetes(env):
		return "KUBERNETES"
	case has("WEBSITE_SITE_NAME", "WEBSITE_INSTANCE_ID", "WEBSITE_RESOURCE_GROUP", "WEBSITE_SKU"):
		return "AZURE_APP_SERVICE"
	}
	return "NONE"
}

// onKubernetes looks for the variables that a pod gets for each service.
func onKubernetes(env *properties.Document) bool {
	for _, name := range env.Names {
		if service, ok := strings.CutSuffix(name, "_SERVICE_HOST"); ok {
			if _, ok := env.Values[service+"_SERVICE_PORT"]; ok {
				return true
			}
		}
	}
	return false
}
