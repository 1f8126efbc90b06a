package structure

import (
	"cmp"
	"slices"
)

// Upwards are the calls that run in a circle: of files that call one another,
// directly or by way of others, none is above the other. Where there are none
// the files of the package can be read from the top.
func Upwards(calls []Call) (up []Call) {
	below := reach(calls)
	for _, c := range calls {
		if below[c.To][c.From] {
			up = append(up, c)
		}
	}
	return up
}

// reach is which files each file calls, directly or by way of others.
func reach(calls []Call) map[string]map[string]bool {
	next := make(map[string][]string)
	for _, c := range calls {
		next[c.From] = append(next[c.From], c.To)
	}
	below := make(map[string]map[string]bool)
	for from := range next {
		below[from] = make(map[string]bool)
		todo := slices.Clone(next[from])
		for len(todo) > 0 {
			file := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if !below[from][file] {
				below[from][file] = true
				todo = append(todo, next[file]...)
			}
		}
	}
	return below
}

// Circles are the groups of files that call one another, each in order, with the
// number of calls within it.
func Circles(calls []Call) (circles [][]string) {
	below := reach(calls)
	seen := make(map[string]bool)
	for from := range below {
		if seen[from] || !below[from][from] {
			continue
		}
		circle := []string{}
		for to := range below[from] {
			if below[to][from] {
				circle, seen[to] = append(circle, to), true
			}
		}
		slices.Sort(circle)
		circles = append(circles, circle)
	}
	slices.SortFunc(circles, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return circles
}
