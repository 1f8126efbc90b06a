package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A rule that was made within the interval counts whole, where the rules were read before.
func TestCountersOfNewRules(t *testing.T) {
	now := Counters{"ListenDrops": 9, "nft ip filter input handle 5 drop": 12, RulesRead: 4}
	require.Equal(t, Counters{"ListenDrops": 2, "nft ip filter input handle 5 drop": 12, RulesRead: 1}, now.Sub(Counters{"ListenDrops": 7, RulesRead: 3}))
	require.Equal(t, Counters{"ListenDrops": 2}, now.Sub(Counters{"ListenDrops": 7}), "of before nothing is known")
	require.Equal(t, Counters{"ListenDrops": 9}, now.Sub(Counters{"ListenDrops": 10}), "another namespace")
}

// So do the clients that were first refused at an address within it, where these were counted before.
func TestCountersOfRefusedClients(t *testing.T) {
	now := Counters{"refused 127.0.0.1:8080": 12, RefusedMissed: 1}
	require.Equal(t, Counters{"refused 127.0.0.1:8080": 12, RefusedMissed: 1}, now.Sub(Counters{RefusedMissed: 0}))
	require.Equal(t, Counters{}, now.Sub(Counters{}), "of before nothing is known")
}
