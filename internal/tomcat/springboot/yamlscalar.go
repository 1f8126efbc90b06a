package springboot

import (
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar is a YAML scalar as the text that Spring would print of it.
func scalar(n *yaml.Node) string {
	text, _ := resolveScalar(n)
	return text
}

// resolveScalar resolves a scalar by YAML 1.1, which is what SnakeYAML speaks
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
	return v, !yamlFloat(v)
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

// yamlFloat says that a plain scalar is a floating point number; its spelling
// is kept, it is never the value of a limit. It matters for keys only.
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
