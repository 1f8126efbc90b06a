package render_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

// junitRule is what a reader of JUnit XML takes of an element.
type junitRule struct {
	required, optional []string // attributes
	children           []string
}

// junitReaders are two of them, their schemas retold: Jenkins' xUnit plugin
// (junit-10.xsd), and Maven Surefire (surefire-test-report.xsd), whose documents begin at testsuite.
func junitReaders() map[string]map[string]junitRule {
	fault := junitRule{required: []string{"type"}, optional: []string{"message"}}
	return map[string]map[string]junitRule{
		"jenkins": {
			"testsuites": {optional: []string{"name", "time", "tests", "failures", "errors"}, children: []string{"testsuite"}},
			"testsuite": {
				required: []string{"name", "tests", "failures", "errors"}, optional: []string{"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
				children: []string{"testsuite", "properties", "testcase", "system-out", "system-err"},
			},
			"testcase": {required: []string{"name"}, optional: []string{"time", "classname", "group"}, children: []string{"skipped", "error", "failure", "system-out", "system-err"}},
			"failure":  fault, "error": fault, "system-out": {},
		},
		"surefire": {
			"testsuite": {required: []string{"name", "tests", "errors", "skipped", "failures"}, optional: []string{"time", "group"}, children: []string{"properties", "testcase"}},
			"testcase":  {required: []string{"name", "time"}, optional: []string{"classname", "group"}, children: []string{"failure", "skipped", "error", "system-out", "system-err"}},
			"failure":   fault, "error": fault, "system-out": {},
		},
	}
}

func TestJUnitIsWhatItsReadersTake(t *testing.T) {
	hostile := "a\x00\u202e]]><b>&\"'"
	for name, r := range map[string]*api.Run{
		"lost": {
			Command: hostile, Seconds: 1234.5, Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Listeners: []api.RunListener{{Port: 8080, Status: "losing", DroppedPackets: 3, Verdict: api.Verdict{Summary: hostile}}, {Port: 8081, Status: "ok"}},
		},
		"nothing seen": {Command: "k6", Problem: hostile},
		"no server":    {Command: "k6"},
	} {
		var b bytes.Buffer
		require.NoError(t, runreport.JUnit(&b, r))
		for reader, rules := range junitReaders() {
			t.Run(name+" "+reader, func(t *testing.T) { take(t, b.Bytes(), rules) })
		}
	}
}

// take reads a document as strictly as the rules say.
func take(t *testing.T, document []byte, rules map[string]junitRule) {
	t.Helper()
	seconds := regexp.MustCompile(`^[0-9]*(\.[0-9]{0,3})?$`)
	var above []string
	for d := xml.NewDecoder(bytes.NewReader(document)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			rule, known := rules[e.Name.Local]
			require.True(t, known, e.Name.Local)
			if n := len(above); n > 0 {
				require.Contains(t, rules[above[n-1]].children, e.Name.Local)
			}
			var has []string
			for _, a := range e.Attr {
				has = append(has, a.Name.Local)
				require.True(t, slices.Contains(rule.required, a.Name.Local) || slices.Contains(rule.optional, a.Name.Local), "%s of %s", a.Name.Local, e.Name.Local)
				if a.Name.Local == "time" {
					require.Regexp(t, seconds, a.Value)
				}
			}
			require.Subset(t, has, rule.required, e.Name.Local)
			above = append(above, e.Name.Local)
		case xml.EndElement:
			above = above[:len(above)-1]
		}
	}
}
