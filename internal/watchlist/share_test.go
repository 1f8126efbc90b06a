package watchlist

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShares(t *testing.T) {
	many := make([]Claimant, 100)
	for i := range many {
		many[i].NetNS = 1
	}
	spread := make([]Claimant, 100) // one in each namespace, all of one owner
	for i := range spread {
		spread[i] = Claimant{Owner: "a", NetNS: uint64(i)}
	}
	keptSpread := slices.Clone(spread)
	for i := range keptSpread {
		keptSpread[i].Watched = true
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
		"what is watched stays":     {[]Claimant{{NetNS: 1}, {NetNS: 1, Watched: true}, {NetNS: 2}}, 2, []int{1, 2}},
		"new namespaces are heard":  {[]Claimant{{NetNS: 1, Watched: true}, {NetNS: 1, Watched: true}, {NetNS: 2}}, 2, []int{0, 2}},
		"watched namespaces before": {[]Claimant{{NetNS: 1}, {NetNS: 2, Watched: true}, {NetNS: 3, Watched: true}}, 2, []int{1, 2}},
		"one owner has many":        {append(slices.Clone(spread), Claimant{Owner: "b", NetNS: 200}, Claimant{Owner: "b", NetNS: 200}), 4, []int{0, 1, 100, 101}},
		"and was there first":       {append(slices.Clone(keptSpread), Claimant{Owner: "b", NetNS: 200}), 4, []int{0, 1, 2, 100}},
		"no room":                   {[]Claimant{{NetNS: 1}}, 0, []int{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, Shares(tt.claimants, tt.limit)) })
	}
}
