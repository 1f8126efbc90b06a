package words

import (
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// AllThreads says that n of n are taken: "the only thread is", "all 200 threads are".
func AllThreads(n int) string {
	if n == 1 {
		return "the only thread is"
	}
	return "all " + phrase.Count(n, "thread") + " are"
}
