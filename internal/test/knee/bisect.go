package knee

import "math"

// bisect finds the highest load between one that is served and one that is not, by trials,
// until they are no more than a part apart (or one client).
func bisect(served, lost, part float64, whole bool, try func(load float64) bool) (low, high float64, tries int) {
	for tries = 0; tries < 12; tries++ {
		middle := (served + lost) / 2
		if whole {
			middle = math.Floor(middle)
			if middle <= served {
				break
			}
		} else if lost-served <= part*served {
			break
		}
		if try(middle) {
			served = middle
		} else {
			lost = middle
		}
	}
	return served, lost, tries
}
