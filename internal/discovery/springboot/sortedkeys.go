package springboot

import (
	"maps"
	"slices"
)

// sortedKeys makes the order of a map's walk the same each time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
