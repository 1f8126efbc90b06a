package diagnosis

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
)

// sentenceEnd is where one sentence ends and the next begins; an item of a list ends as well.
var sentenceEnd = regexp.MustCompile(`[.!?] (?:[A-Z]|$)`)

// longest is how many words a sentence has at most that somebody reads who was just woken.
const longest = 36

// Every sentence of the answers in the goldens can be read at three in the morning.
func TestSentencesCanBeRead(t *testing.T) {
	golden, err := os.ReadFile("testdata/answers.golden")
	require.NoError(t, err)
	n := 0
	for _, line := range strings.Split(string(golden), "\n") {
		label, text, ok := strings.Cut(line, "  ")
		if !ok || !slices.Contains([]string{"What", "Why", "Not", "Do 1", "Do 2", "Do 3"}, strings.TrimSpace(label)) {
			continue
		}
		text = strings.TrimSpace(text)
		n++
		require.Regexp(t, `^[A-Z0-9]|^acceptCount|^maxConnections|^server\.tomcat\.`, text, "begins as a sentence does")
		require.NotContains(t, text, "  ")
		for _, s := range sentenceEnd.Split(text, -1) {
			require.LessOrEqual(t, len(strings.Fields(s)), longest, s)
			require.LessOrEqual(t, strings.Count(s, " because "), 1, s)
		}
	}
	require.Greater(t, n, 500)
}

// Why continues where What ends: it says no clause of it again.
func TestWhySaysSomethingElseThanWhat(t *testing.T) {
	n := 0
	for _, s := range scenarios() {
		a := Judge(s.evidence(), reading.DefaultThresholds()).Answer
		what, why := wordsOf(a.What), wordsOf(a.Why)
		for i := 0; i+mostShared < len(what); i++ {
			clause := " " + strings.Join(what[i:i+mostShared+1], " ") + " "
			require.NotContains(t, " "+strings.Join(why, " ")+" ", clause, "%s:\n%s\n%s", s.name, a.What, a.Why)
		}
		require.NotContains(t, a.Why, "othing is lost", s.name)
		n++
	}
	require.Greater(t, n, 200)
}

// mostShared is how many words running both may have, as a name has: "in this network namespace".
const mostShared = 4

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" .,;:()", r) })
}

// A screen has one spelling for each limit: that of the setting which it advises to change.
func TestLimitsHaveOneSpelling(t *testing.T) {
	golden, err := os.ReadFile("testdata/answers.golden")
	require.NoError(t, err)
	for block := range strings.SplitSeq(string(golden), "\n## ") {
		_, said, _ := strings.Cut(block, "\n") // the first line is the scenario's name
		for spring, tomcat := range map[string]string{"server.tomcat.max-connections": "maxConnections", "server.tomcat.threads.max": "maxThreads", "server.tomcat.accept-count": "acceptCount"} {
			require.False(t, strings.Contains(said, spring) && strings.Contains(said, tomcat), "%s and %s: %s", spring, tomcat, block)
		}
	}
}

// What confused readers is said nowhere.
func TestWordsThatConfused(t *testing.T) {
	more := regexp.MustCompile(`(\d[\d,]*) of (\d[\d,]*) (connections|threads|files|local ports)`)
	for _, file := range []string{"answers", "verdicts"} {
		golden, err := os.ReadFile("testdata/" + file + ".golden")
		require.NoError(t, err)
		for _, phrase := range []string{"snapshots differ", "the counters do not tell", "fall to this cause", "got in and no answer", "and longer", "(drop +31, 262,145 of"} {
			require.NotContains(t, string(golden), phrase)
		}
		for block := range strings.SplitSeq(string(golden), "\n## ") {
			if strings.Contains(block, "\nlosing · ") {
				require.NotContains(t, block, "nothing is lost yet")
				require.NotContains(t, block, "Nothing is lost")
			}
			for _, m := range more.FindAllStringSubmatch(block, -1) {
				require.False(t, len(m[1]) > len(m[2]) || len(m[1]) == len(m[2]) && m[1] > m[2], "more than there are: %s", m[0])
			}
		}
	}
}
