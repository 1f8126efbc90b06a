package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestWholeFile(t *testing.T) {
	got, err := Parse("tcpdiag.yml", []byte(`
targets:
  - port: 8080
    labels: {app: shop, release: 1.10, canary: true}
    limits:
      max_connections: -1
      accept_count: 100
    actuator: http://127.0.0.1:8081/actuator
  - ports: [8443, 9443]
    limits: {max_threads: 50}
  - port: 8009
    pid: 42
  - {port: 8009, pid: 43}
  - pid: 44
all: true
all_namespaces: false
max_listeners: 20
sample_interval: 5ms
scan_interval: 1m
labels:
  team: "007"
limits: {max_threads: 200}
actuator: https://shop.example/actuator
`))
	require.NoError(t, err)
	require.Equal(t, &File{
		Targets: []Target{
			{
				Line: 3, Ports: []uint16{8080}, Labels: map[string]string{"app": "shop", "release": "1.10", "canary": "true"},
				Limits:   Limits{MaxConnections: &Number{-1, 6}, AcceptCount: &Number{100, 7}},
				Actuator: "http://127.0.0.1:8081/actuator",
			},
			{Line: 9, Ports: []uint16{8443, 9443}, Limits: Limits{MaxThreads: &Number{50, 10}}},
			{Line: 11, Ports: []uint16{8009}, PID: 42},
			{Line: 13, Ports: []uint16{8009}, PID: 43},
			{Line: 14, PID: 44},
		},
		All: new(true), AllNamespaces: new(false), MaxListeners: new(20), SampleInterval: new(5 * time.Millisecond), ScanInterval: new(time.Minute),
		Labels: map[string]string{"team": "007"}, Limits: Limits{MaxThreads: &Number{200, 22}},
		Actuator: "https://shop.example/actuator",
	}, got)
}

func TestFilesThatSayNothing(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "blank": "\n\n", "a comment": "# nothing\n", "a document": "---\n", "null": "~\n", "byte order mark": "\ufeff# x\n",
		"no entries": "targets:\nlabels:\nlimits:\n", "empty ones": "targets: []\nlabels: {}\nlimits: {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("tcpdiag.yml", []byte(text))
			require.NoError(t, err)
			if got.Labels != nil {
				require.Empty(t, got.Labels)
				got.Labels = nil
			}
			require.Equal(t, &File{}, got)
		})
	}
}

// An alias is what it stands for.
func TestAliases(t *testing.T) {
	got, err := Parse("tcpdiag.yml", []byte("targets:\n- {port: 1, labels: &shop {app: shop}}\n- {port: 2, labels: *shop}\n"))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"app": "shop"}, got.Targets[1].Labels)
}

// Each problem is one line that names the thing, the value and the remedy.
func TestProblems(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := map[string]struct{ text, want string }{
		// keys
		"misspelled":        {"targets:\n- port: 1\n  limits:\n    max_conections: 5", `tcpdiag.yml:4: unknown key "max_conections": did you mean "max_connections"?`},
		"letters swapped":   {"targets:\n- prot: 1", `tcpdiag.yml:2: unknown key "prot": did you mean "port"?`},
		"as in the flag":    {"scan-interval: 1s", `tcpdiag.yml:1: unknown key "scan-interval": did you mean "scan_interval"?`},
		"as in Tomcat":      {"limits:\n  maxThreads: 5", `tcpdiag.yml:2: unknown key "maxThreads": did you mean "max_threads"?`},
		"plural":            {"target: []", `tcpdiag.yml:1: unknown key "target": did you mean "targets"?`},
		"of another place":  {"targets:\n- port: 1\n  max_connections: 5", `tcpdiag.yml:3: unknown key "max_connections": it belongs under "limits"`},
		"port at the top":   {"port: 8080", `tcpdiag.yml:1: unknown key "port": it belongs under "targets"`},
		"nothing near":      {"limits: {color: red}", `tcpdiag.yml:1: unknown key "color": known here: max_connections, accept_count, max_threads`},
		"very long":         {long + ": 1", `tcpdiag.yml:1: unknown key "` + long[:80] + `…": known here: targets, all, all_namespaces, max_listeners, sample_interval, scan_interval, labels, limits, actuator`},
		"twice":             {"all: true\nlabels: {}\nall: false", `tcpdiag.yml:3: key "all" is given twice (first on line 1)`},
		"label twice":       {"labels:\n  app: a\n  app: b", `tcpdiag.yml:3: key "app" is given twice (first on line 2)`},
		"merge":             {"labels: &x {app: a}\nlimits:\n  <<: *x", `tcpdiag.yml:3: merge keys (<<) are not understood: write the keys out`},
		"a list for a key":  {"? [a]\n: 1", `tcpdiag.yml:1: the file: a key must be a word`},
		"empty key":         {`"": 1`, `tcpdiag.yml:1: unknown key "": known here: targets, all, all_namespaces, max_listeners, sample_interval, scan_interval, labels, limits, actuator`},
		"an alias for keys": {"labels: {app: &a shop}\nlimits: *a", `tcpdiag.yml:1: limits: give keys and values, each as "key: value", not "shop"`},
		// types
		"a word":               {"hello", `tcpdiag.yml:1: the file: give keys and values, each as "key: value", not "hello"`},
		"a list":               {"- port: 1", `tcpdiag.yml:1: the file: give keys and values, each as "key: value", not a list`},
		"targets a mapping":    {"targets:\n  port: 1", `tcpdiag.yml:2: targets: give a list, each entry as "- port: 8080", not keys and values`},
		"targets a number":     {"targets: 8080", `tcpdiag.yml:1: targets: give a list, each entry as "- port: 8080", not "8080"`},
		"a target a number":    {"targets: [8080]", `tcpdiag.yml:1: a target: give keys and values, such as "- port: 8080", not "8080"`},
		"an empty target":      {"targets:\n-", `tcpdiag.yml:2: a target: give keys and values, such as "- port: 8080", not ""`},
		"labels a list":        {"labels: [a]", `tcpdiag.yml:1: labels: give keys and values, each as "key: value", not a list`},
		"limits a number":      {"limits: 5", `tcpdiag.yml:1: limits: give keys and values, each as "key: value", not "5"`},
		"all a word":           {"all: yes", `tcpdiag.yml:1: all "yes": give true or false`},
		"all quoted":           {"all: 'true'", `tcpdiag.yml:1: all "true": give true or false, without quotes`},
		"all without value":    {"all:", `tcpdiag.yml:1: all has no value: give true or false, or leave the key out`},
		"all a mapping":        {"all: {a: b}", `tcpdiag.yml:1: all: give true or false, not keys and values`},
		"number a word":        {"max_listeners: many", `tcpdiag.yml:1: max_listeners "many": give a whole number from 1`},
		"number with fraction": {"max_listeners: 1.5", `tcpdiag.yml:1: max_listeners "1.5": give a whole number from 1`},
		"number quoted":        {`max_listeners: "5"`, `tcpdiag.yml:1: max_listeners "5": give a whole number from 1, without quotes`},
		"number hexadecimal":   {"max_listeners: 0x10", `tcpdiag.yml:1: max_listeners "0x10": give a whole number from 1`},
		"number octal":         {"max_listeners: 010", `tcpdiag.yml:1: max_listeners "010": give a whole number from 1`},
		"number zero":          {"max_listeners: 0", `tcpdiag.yml:1: max_listeners "0": give a whole number from 1`},
		"number too large":     {"max_listeners: 9999999999", `tcpdiag.yml:1: max_listeners "9999999999": give a whole number from 1`},
		// limits
		"no connections":       {"limits: {max_connections: 0}", `tcpdiag.yml:1: max_connections "0": give a whole number from 1, or -1 for no limit`},
		"negative connections": {"limits: {max_connections: -2}", `tcpdiag.yml:1: max_connections "-2": give a whole number from 1, or -1 for no limit`},
		"negative threads":     {"limits: {max_threads: -1}", `tcpdiag.yml:1: max_threads "-1": give a whole number from 1`},
		// ports
		"port zero":            {"targets: [{port: 0}]", `tcpdiag.yml:1: port "0": give a whole number from 1 to 65535`},
		"port too high":        {"targets:\n- port: 70000", `tcpdiag.yml:2: port "70000": give a whole number from 1 to 65535`},
		"port a list":          {"targets:\n- port: [1, 2]", `tcpdiag.yml:2: port: give a whole number from 1 to 65535, not a list`},
		"ports a number":       {"targets:\n- ports: 80", `tcpdiag.yml:2: ports: give a list, such as "[8080, 8443]"`},
		"ports empty":          {"targets:\n- ports: []", `tcpdiag.yml:2: ports: give a list, such as "[8080, 8443]"`},
		"ports with a name":    {"targets:\n- ports:\n  - 80\n  - http", `tcpdiag.yml:4: ports "http": give a whole number from 1 to 65535`},
		"port and ports":       {"targets:\n- port: 1\n  ports: [2]", `tcpdiag.yml:2: a target has both "port" and "ports": give one of them`},
		"neither":              {"targets:\n- labels: {app: a}", `tcpdiag.yml:2: a target names nothing: give it a "port", "ports" or a "pid"`},
		"port in two targets":  {"targets:\n- port: 80\n- ports: [81, 80]", `tcpdiag.yml:3: port 80 is named twice (first in the target on line 2)`},
		"port twice in one":    {"targets:\n- ports: [80, 80]", `tcpdiag.yml:2: port 80 is named twice (first in the target on line 2)`},
		"port of any and pid":  {"targets:\n- port: 80\n- {port: 80, pid: 4}", `tcpdiag.yml:3: port 80 is named twice (first in the target on line 2)`},
		"pid zero":             {"targets: [{pid: 0}]", `tcpdiag.yml:1: pid "0": give a process id, a whole number from 1`},
		"pid in two targets":   {"targets:\n- pid: 4\n- pid: 4", `tcpdiag.yml:3: pid 4 is named twice (first in the target on line 2)`},
		"more ports than sane": {"targets:\n- ports: [" + manyPorts(1001) + "]", `tcpdiag.yml: 1001 ports in targets: give at most 1000`},
		// durations
		"time without unit":  {"scan_interval: 5", `tcpdiag.yml:1: scan_interval "5": give a time with its unit, from 100ms to 1m`},
		"time with bad unit": {"scan_interval: 5 sec", `tcpdiag.yml:1: scan_interval "5 sec": give a time with its unit, from 100ms to 1m`},
		"time too short":     {"sample_interval: 1us", `tcpdiag.yml:1: sample_interval "1us": give a time with its unit, from 1ms to 10s`},
		"time too long":      {"scan_interval: 1h", `tcpdiag.yml:1: scan_interval "1h": give a time with its unit, from 100ms to 1m`},
		"time negative":      {"scan_interval: -1s", `tcpdiag.yml:1: scan_interval "-1s": give a time with its unit, from 100ms to 1m`},
		// URLs
		"URL without scheme": {"actuator: localhost:8081/actuator", `tcpdiag.yml:1: actuator "localhost:8081/actuator": give a URL such as http://127.0.0.1:8081/actuator`},
		"URL of a file":      {"actuator: file:///etc/passwd", `tcpdiag.yml:1: actuator "file:///etc/passwd": give a URL such as http://127.0.0.1:8081/actuator`},
		"URL without host":   {"actuator: http:///actuator", `tcpdiag.yml:1: actuator "http:///actuator": give a URL such as http://127.0.0.1:8081/actuator`},
		"URL with bad port":  {"actuator: http://a:0/", `tcpdiag.yml:1: actuator "http://a:0/": give a URL such as http://127.0.0.1:8081/actuator`},
		"URL with a query":   {"actuator: http://u:secret@a/b?c=d", `tcpdiag.yml:1: actuator "http://u:xxxxx@a/b?c=d": give the URL without a query or fragment`},
		"no URL at all":      {"actuator: 'http://u:secret@a b/%zz'", `tcpdiag.yml:1: actuator: this is no URL: give one such as http://127.0.0.1:8081/actuator`},
		// labels
		"label with hyphen":   {"labels: {my-app: a}", `tcpdiag.yml:1: label name "my-app": give letters, digits and underscores, not beginning with a digit`},
		"label with digit":    {"labels: {2nd: a}", `tcpdiag.yml:1: label name "2nd": give letters, digits and underscores, not beginning with a digit`},
		"label of Prometheus": {"labels: {__name__: a}", `tcpdiag.yml:1: label name "__name__": names that begin with __ are Prometheus's own`},
		"label taken":         {"labels:\n  netns: a", `tcpdiag.yml:2: label name "netns" is taken by tcpdiag or Prometheus: give another, such as "app_netns"`},
		"label name long":     {"labels: {" + long[:65] + ": a}", `tcpdiag.yml:1: label name "` + long[:65] + `": give at most 64 letters`},
		"label value long":    {"labels:\n  app: " + long, `tcpdiag.yml:2: label app is 300 bytes long: give at most 256`},
		"label without value": {"labels:\n  app:", `tcpdiag.yml:2: label app has no value: give a text, or leave the key out`},
		"label empty":         {"labels:\n  app: ''", `tcpdiag.yml:2: label app is empty: give it a value, or leave it out`},
		"label a list":        {"labels:\n  app: [a]", `tcpdiag.yml:2: label app: give a text, not a list`},
		"label of two lines":  {"labels:\n  app: \"a\\nb\"", `tcpdiag.yml:2: label app "a\nb": give it without control characters`},
		"labels without end":  {"labels: {" + manyLabels(17) + "}", `tcpdiag.yml:1: 17 labels: give at most 16`},
		// YAML
		"two documents": {"all: true\n---\nall: false", `tcpdiag.yml:2: a second document begins: give one`},
		"broken":        {"labels:\n  app: 'a", `tcpdiag.yml:2: not valid YAML: found unexpected end of stream`},
		"broken later":  {"all: true\n---\n[", `tcpdiag.yml:3: not valid YAML: did not find expected node content`},
		"tab":           {"labels:\n\tapp: a", `tcpdiag.yml:2: not valid YAML: found character that cannot start any token`},
		"no text":       {"\xff\xfe\x00", `tcpdiag.yml: not valid YAML: `},
		"unknown alias": {"labels: *x", `tcpdiag.yml: not valid YAML: unknown anchor 'x' referenced`},
		"too large":     {strings.Repeat("#\n", 1<<19+1), `tcpdiag.yml: the file is larger than 1048576 bytes`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("tcpdiag.yml", []byte(tt.text))
			require.Nil(t, got)
			if strings.HasSuffix(tt.want, ": ") {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.EqualError(t, err, tt.want)
		})
	}
}

func manyPorts(n int) string {
	return strings.TrimSuffix(numbered(n, func(i string) string { return i + "," }), ",")
}

func manyLabels(n int) string {
	return strings.TrimSuffix(numbered(n, func(i string) string { return "l" + i + ": x, " }), ", ")
}

func numbered(n int, word func(string) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(word(itoa(1000 + i)))
	}
	return b.String()
}

// All that is wrong is said at once, in the order of the lines.
func TestAllProblemsAtOnce(t *testing.T) {
	_, err := Parse("tcpdiag.yml", []byte("scan_interval: 5\ntargets:\n- port: 1\n- port: 1\nal: true\n"))
	require.EqualError(t, err, `tcpdiag.yml:1: scan_interval "5": give a time with its unit, from 100ms to 1m
tcpdiag.yml:4: port 1 is named twice (first in the target on line 3)
tcpdiag.yml:5: unknown key "al": did you mean "all"?`)
	var problems *Error
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems.Problems, 3)
}

func TestLoad(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "none.yml")

	_, err = Load(t.TempDir())
	require.ErrorContains(t, err, "is a directory")

	path := filepath.Join(t.TempDir(), "some.yml")
	require.NoError(t, os.WriteFile(path, []byte("all: true\n"), 0o600))
	got, err := Load(path)
	require.NoError(t, err)
	require.True(t, *got.All)

	require.NoError(t, os.WriteFile(path, []byte("all: perhaps\n"), 0o600))
	_, err = Load(path)
	require.EqualError(t, err, path+`:1: all "perhaps": give true or false`)
}

func FuzzParse(f *testing.F) {
	m := mutate.Into(f)
	// Small ones: the example would keep the fuzzer busy with shortening it.
	for _, seed := range []string{"targets: [{port: 1, pid: 2}]", "a: &a [*a]", "limits: {max_threads: 1}", "scan_interval: 1s", "actuator: http://a/b", "labels: {a: b}", "max_listeners: 1", "labels: {<<: {a: b}}", "? {a: b}\n: c", "--- a\n--- b", "all: !!binary x", "\x00"} {
		m.Add(seed)
	}
	m.Fuzz(func(t *testing.T, text string) {
		got, err := Parse("tcpdiag.yml", []byte(text))
		if err != nil {
			var problems *Error
			require.ErrorAs(t, err, &problems)
			for i, p := range problems.Problems {
				require.NotContains(t, p.Text, "\n")
				require.GreaterOrEqual(t, p.Line, 0)
				require.True(t, i == 0 || p.Line >= problems.Problems[i-1].Line)
			}
			return
		}
		for _, target := range got.Targets {
			require.True(t, len(target.Ports) > 0 || target.PID > 0)
			require.NotContains(t, target.Ports, uint16(0))
		}
	})
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"", "ab", 2},
		{"port", "port", 0},
		{"prot", "port", 1},
		{"ports", "port", 1},
		{"pert", "port", 1},
		{"kitten", "sitting", 3},
		{"ab", "ba", 1},
		{"abcd", "badc", 2},
	} {
		require.Equal(t, tt.want, distance(tt.a, tt.b), "%q %q", tt.a, tt.b)
	}
}
