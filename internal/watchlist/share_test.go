package watchlist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShares(t *testing.T) {
	many := make([]Claimant, 100)
	for i := range many {
		many[i].NetNS = 1
	}
	for name, tt := range map[string]struct {
		claimants []Claimant
		limit     int
		want      []int
	}{
		"none":                      {nil, 3, []int{}},
		"room for all":              {[]Claimant{{NetNS: 1}, {NetNS: 1}}, 3, []int{0, 1}},
		"one namespace is greedy":   {append(append([]Claimant{}, many...), Claimant{NetNS: 2}, Claimant{NetNS: 3}), 5, []int{0, 1, 2, 100, 101}},
		"explicit ones come first":  {append(append([]Claimant{}, many...), Claimant{NetNS: 1, Explicit: true}, Claimant{NetNS: 2}), 2, []int{0, 100}},
		"all explicit":              {[]Claimant{{NetNS: 1, Explicit: true}, {NetNS: 1, Explicit: true}, {NetNS: 2, Explicit: true}}, 2, []int{0, 1}},
		"what is watched stays":     {[]Claimant{{NetNS: 1}, {NetNS: 1, Kept: true}, {NetNS: 2}}, 2, []int{1, 2}},
		"new namespaces are heard":  {[]Claimant{{NetNS: 1, Kept: true}, {NetNS: 1, Kept: true}, {NetNS: 2}}, 2, []int{0, 2}},
		"watched namespaces before": {[]Claimant{{NetNS: 1}, {NetNS: 2, Kept: true}, {NetNS: 3, Kept: true}}, 2, []int{1, 2}},
		"no room":                   {[]Claimant{{NetNS: 1}}, 0, []int{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, Shares(tt.claimants, tt.limit)) })
	}
}
