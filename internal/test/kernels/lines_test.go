package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const console = "SeaBIOS\r\nBooting from ROM..\x1b[2J@@boot 3.5 6.1.0-50-cloud-amd64 x86_64\r\n" + `@@run sockdiag
=== RUN   TestA
    a_test.go:7: 
        	Error Trace:	github.com/tcpdiag/tcpdiag/a_test.go:7
        	Error:      	Not equal: 
        	            	expected: 1
        	            	actual  : 2
        	            	
        	            	Diff:
        	Test:       	TestA/part
        	Messages:   	5 | times
    --- FAIL: TestA/part (0.00s)
--- FAIL: TestA (0.01s)
--- PASS: TestB (0.02s)
BenchmarkScan/one_port-2 	     100	   812.0 ns/call	         1.020 x-bare	       0 B/op
--- SKIP: TestC (0.00s)
@@exit 1 9.5
@@run guest
@@feature open files by stat	yes, since 6.2
--- PASS: TestD (0.02s)
@@exit 0 10
@@run plan
--- PASS: TestE (0.02s)
`

func TestReadLog(t *testing.T) {
	g, err := readLog(strings.NewReader(console))
	require.NoError(t, err)
	require.Equal(t, guestLog{
		Kernel: "6.1.0-50-cloud-amd64", Machine: "x86_64", Boot: 3.5,
		Features: []feature{{"Scan/one_port against bare calls", "× 1.020"}, {"open files by stat", "yes, since 6.2"}},
		Runs: []run{
			{Name: "sockdiag", Passed: 1, Failed: []failure{{"TestA", "Not equal: expected: 1 actual : 2 (5 / times)"}}, Skipped: []string{"TestC"}, Exit: 1, Seconds: 6},
			{Name: "guest", Passed: 1, Exit: 0, Seconds: 0.5},
			{Name: "plan", Passed: 1, Exit: -1},
		},
	}, g)
	require.False(t, g.Runs[0].ok())
	require.True(t, g.Runs[1].ok())
	require.False(t, g.Runs[2].ok(), "the guest ended first")
	require.False(t, run{Name: "x"}.ok(), "no test ran")
}

func TestReadLogToTheEnd(t *testing.T) {
	g, err := readLog(strings.NewReader(console + "@@exit 0 20\n@@end\n@@took 31 12\n@@commit 01abcdef23\n"))
	require.NoError(t, err)
	require.True(t, g.Ended)
	require.InDelta(t, 31, g.Took, 0)
	require.InDelta(t, 12, g.Spent, 0)
	require.Equal(t, []string{"01abcdef23"}, g.Commits)
}

// A guest that is booted twice ends when its second boot does.
func TestReadLogOfTwoBoots(t *testing.T) {
	const second = "@@exit 0 20\n@@end\n@@boot 2.5 6.1.0-50-cloud-amd64 x86_64\n@@run guest\n--- FAIL: TestF (1.00s)\n"
	g, err := readLog(strings.NewReader(console + second))
	require.NoError(t, err)
	require.False(t, g.Ended)
	g, err = readLog(strings.NewReader(console + second + "@@exit 1 6.5\n@@end\n"))
	require.NoError(t, err)
	require.True(t, g.Ended)
	require.InDelta(t, 3.5, g.Boot, 0)
	require.Equal(t, run{Name: "guest", Passed: 1, Failed: []failure{{Name: "TestF"}}, Exit: 1, Seconds: 4.5}, g.Runs[2])

	g, err = readLog(strings.NewReader(console + strings.ReplaceAll(second, "@@end\n", "") + "@@exit 1 6.5\n@@end\n"))
	require.NoError(t, err)
	require.False(t, g.Ended, "the first boot did not")
}
