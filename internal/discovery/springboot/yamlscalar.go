package springboot

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

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
