package config

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// scalar is the text of a single value of one of the YAML types, or a problem
// that asks for want.
func (p *parser) scalar(n *yaml.Node, key, want string, tags ...string) (string, bool) {
	n = resolve(n)
	switch {
	case n.Kind != yaml.ScalarNode:
		p.problemf(n.Line, "%s: give %s%s", key, want, got(n))
	case null(n):
		p.problemf(n.Line, "%s has no value: give %s, or leave the key out", key, want)
	default:
		for _, tag := range tags {
			if n.ShortTag() == tag {
				return n.Value, true
			}
		}
		p.refuse(n, key, want)
	}
	return "", false
}

func (p *parser) refuse(n *yaml.Node, key, want string) {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		want += ", without quotes"
	}
	p.problemf(n.Line, "%s %q: give %s", key, short(n.Value), want)
}

func (p *parser) boolean(n *yaml.Node, key string) *bool {
	text, ok := p.scalar(n, key, "true or false", "!!bool")
	if !ok {
		return nil
	}
	return new(text == "true" || text == "True" || text == "TRUE")
}

// number is a whole number from least up; with a least of -1 that is -1, for no
// limit, or one from 1.
func (p *parser) number(n *yaml.Node, key string, least int) *Number {
	want := fmt.Sprintf("a whole number from %d", least)
	if least < 0 {
		want = "a whole number from 1, or -1 for no limit"
	}
	return p.between(n, key, want, func(v int64) bool {
		return v > 0 && v >= int64(least) || v == -1 && least < 0
	})
}

// between is a whole number that fits. It is written in decimal, without the
// leading zeros that make it octal to some readers of YAML and not to others.
func (p *parser) between(n *yaml.Node, key, want string, fits func(int64) bool) *Number {
	n = resolve(n)
	text, ok := p.scalar(n, key, want, "!!int")
	if !ok {
		return nil
	}
	v, err := strconv.ParseInt(text, 10, 32)
	if err != nil || strconv.FormatInt(v, 10) != text || !fits(v) {
		p.refuse(n, key, want)
		return nil
	}
	return &Number{Value: int(v), Line: n.Line}
}

func (p *parser) duration(n *yaml.Node, key string, least, most time.Duration) *time.Duration {
	want := fmt.Sprintf("a time with its unit, from %s to %s", brief(least), brief(most))
	n = resolve(n)
	text, ok := p.scalar(n, key, want, "!!str")
	if !ok {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		p.problemf(n.Line, "%s %q: give %s", key, short(text), want)
		return nil
	}
	return &d
}

// brief writes a whole minute as 1m, not 1m0s.
func brief(d time.Duration) string {
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// url is an absolute http or https URL. A password in it is not repeated.
func (p *parser) url(n *yaml.Node, key string) string {
	n = resolve(n)
	text, ok := p.scalar(n, key, wantURL, "!!str")
	if !ok {
		return ""
	}
	if err := CheckURL(key, text); err != nil {
		p.problemf(n.Line, "%v", err)
		return ""
	}
	return text
}

const wantURL = "a URL such as http://127.0.0.1:8081/actuator"

// CheckURL checks the base URL of an Actuator, of a key or flag of that name. The error has
// at most what is no secret of it.
func CheckURL(name, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%s: this is no URL: give one such as http://127.0.0.1:8081/actuator", name)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", !validPort(u.Port()):
		return fmt.Errorf("%s %q: give %s", name, short(u.Redacted()), wantURL)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s %q: give the URL without a query or fragment", name, short(u.Redacted()))
	}
	return nil
}

// validPort is true for a port and for none.
func validPort(s string) bool {
	if s == "" {
		return true
	}
	port, err := strconv.ParseUint(s, 10, 16)
	return err == nil && port > 0
}
