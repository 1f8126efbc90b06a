package web

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Light and dark are made of the same variables: a rule of the dark one would be taken back by the
// light one's that stands below it. Words have the contrast that WCAG asks for (4.5), and what is
// drawn can be told from its background.
func TestLightAndDarkCanBeRead(t *testing.T) {
	style, err := Style()
	require.NoError(t, err)
	_, dark, found := strings.Cut(style, "@media (prefers-color-scheme: dark) {")
	require.True(t, found)
	dark, _, _ = strings.Cut(dark, "\n}")
	require.Equal(t, 1, strings.Count(dark, "{"), "variables, and nothing else")
	light, _, _ := strings.Cut(style, "@media")
	colours := variables(light)
	for _, name := range []string{"light", "dark"} {
		if name == "dark" {
			for k, v := range variables(dark) {
				colours[k] = v
			}
		}
		for _, ground := range []string{"bg", "panel"} {
			for _, words := range []string{"fg", "dim", "link", "recent", "full"} {
				require.GreaterOrEqual(t, contrast(colours[words], colours[ground]), 4.5, "%s: %s on %s", name, words, ground)
			}
		}
		for _, drawn := range []string{"shut", "pause", "service", "waiting", "sending", "idle", "closed", "unclassified", "queued"} {
			require.GreaterOrEqual(t, contrast(colours[drawn], colours["track"]), 2.5, "%s: %s", name, drawn)
		}
	}
}

func variables(rules string) map[string]string {
	out := make(map[string]string)
	for _, m := range regexp.MustCompile(`--([a-z]+): (#[0-9a-f]{3,6})`).FindAllStringSubmatch(rules, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// contrast is WCAG's ratio of two colours.
func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

func luminance(colour string) (sum float64) {
	colour = strings.TrimPrefix(colour, "#")
	if len(colour) == 3 {
		colour = string([]byte{colour[0], colour[0], colour[1], colour[1], colour[2], colour[2]})
	}
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, _ := strconv.ParseUint(colour[2*i:2*i+2], 16, 8)
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
