package config

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// examplePath is the file that the packages install.
const examplePath = "../../deploy/config/tcpdiag.yml"

// uncommented takes the # off the keys. Prose has a space after it, once.
func uncommented(example []byte) []byte {
	return regexp.MustCompile(`(?m)^#([^ #\n-]|  )`).ReplaceAll(example, []byte("$1"))
}

func itoa(n int) string { return strconv.Itoa(n) }

// As it is installed it changes nothing.
func TestExampleSaysNothing(t *testing.T) {
	got, err := Load(examplePath)
	require.NoError(t, err)
	require.Equal(t, &File{}, got)
}

func TestExampleWithEverythingCommentedIn(t *testing.T) {
	example, err := os.ReadFile(examplePath)
	require.NoError(t, err)
	got, err := Parse(examplePath, uncommented(example))
	require.NoError(t, err)
	require.Len(t, got.Targets, 3)
	require.Equal(t, map[string]string{"app": "shop", "team": "payments"}, got.Targets[0].Labels)
	require.Equal(t, 8192, got.Targets[0].Limits.MaxConnections.Value)
	require.NotEmpty(t, got.Targets[0].Actuator)
	require.Equal(t, []uint16{8443, 9443}, got.Targets[1].Ports)
	require.Equal(t, 1, got.Targets[2].PID)
	require.False(t, *got.All)
	require.Equal(t, 100, *got.MaxListeners)
	require.Equal(t, 10*time.Millisecond, *got.SampleInterval)
	require.Equal(t, time.Second, *got.ScanInterval)
	require.NotEmpty(t, got.Labels)
	require.NotNil(t, got.Limits.MaxThreads)
	require.NotEmpty(t, got.Actuator)
}

// Every key that is understood is in the example.
func TestExampleHasEveryKey(t *testing.T) {
	example, err := os.ReadFile(examplePath)
	require.NoError(t, err)
	_, err = Parse("x", []byte("zzzzzzzzzzzz: 1\ntargets: [{zzzzzzzzzzzz: 1}]\nlimits: {zzzzzzzzzzzz: 1}"))
	var problems *Error
	require.ErrorAs(t, err, &problems)
	keys := 0
	for _, p := range problems.Problems {
		known := regexp.MustCompile(`known here: (.*)$`).FindStringSubmatch(p.Text)
		if known == nil {
			continue
		}
		for _, key := range regexp.MustCompile(`\w+`).FindAllString(known[1], -1) {
			keys++
			require.Regexp(t, `(?m)^#[ -]*`+key+`:`, string(example))
		}
	}
	require.GreaterOrEqual(t, keys, 8+6+3)
}
