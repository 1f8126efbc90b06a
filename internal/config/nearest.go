package config

import "strings"

// nearest is the word that was probably meant, "" when none is near. Spellings
// of other places ("maxConnections", "scan-interval") are the same word.
func nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(plain(word), plain(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// plain is a word without case, hyphens and underscores.
func plain(word string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(word))
}

// distance is how many letters must be put in, taken out, replaced, or swapped
// with their neighbour (Damerau and Levenshtein's).
func distance(a, b string) int {
	if len(a) > 2*maxLabelName {
		return len(a)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
