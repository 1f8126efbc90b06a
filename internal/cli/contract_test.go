package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/cli/runcmd"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/passthrough"
)

// contractFile lists what does not change within a major version, one thing a line:
// docs/compatibility.md.
const contractFile = checkout + "/docs/contract.txt"

// What is in the contract is there: flags of each command, exit codes, causes, metrics
// with their labels, fields of the JSON documents. What is new enters it by UPDATE=1;
// a line is taken out by hand, with a major version.
func TestContract(t *testing.T) {
	now := slices.Concat(contractFlags(newRootCommand()), contractExits(), contractCauses(), contractMetrics(t), contractFields(t))
	text, err := os.ReadFile(contractFile)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	kept := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	for _, line := range kept {
		require.Contains(t, now, line, "it is in docs/contract.txt, and gone")
	}
	all := slices.Concat(kept, now)
	slices.Sort(all)
	all = slices.Compact(all)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(contractFile, []byte(strings.Join(all, "\n")+"\n"), 0o644)) //nolint:gosec // docs
	}
	t.Logf("%d things, of which %d are not in the contract yet (UPDATE=1)", len(all), len(all)-len(kept))
	require.Greater(t, len(kept), 300)
}

func contractFlags(cmd *cobra.Command) (lines []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			lines = append(lines, fmt.Sprintf("flag %s --%s %s", cmd.CommandPath(), f.Name, f.Value.Type()))
		}
	})
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			lines = append(lines, "command "+sub.CommandPath())
			lines = append(lines, contractFlags(sub)...)
		}
	}
	return lines
}

func contractExits() []string {
	var lines []string
	for name, code := range map[string]int{
		"ok": command.ExitOK, "failure": command.ExitFailure, "usage": command.ExitUsage, "warning": command.ExitWarning, "saturated": command.ExitSaturated, "losing": command.ExitLosing, "down": command.ExitDown,
		"run failed": runcmd.ExitFailed, "run not startable": passthrough.NotStartable, "run not found": passthrough.NotFound, "run signal": passthrough.Signal,
	} {
		lines = append(lines, fmt.Sprintf("exit %d %s", code, name))
	}
	return lines
}

func contractCauses() (lines []string) {
	for _, r := range diagnosis.Runbooks() {
		kind := "finding "
		if r.IsCause() {
			kind = "cause "
		}
		lines = append(lines, kind+r.Code)
	}
	return lines
}

// contractMetrics are those of docs/metrics.md, which a test holds against the code.
func contractMetrics(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(checkout + "/docs/metrics.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, fmt.Sprintf("metric %s %s %s", m[1], m[2], strings.ReplaceAll(strings.ReplaceAll(m[3], "`", ""), " ", "")))
	}
	return lines
}

// contractFields are those of docs/schema, which a test holds against the types.
func contractFields(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(checkout + "/docs/schema/*.json")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var schema struct {
			Defs map[string]struct {
				Properties map[string]struct {
					Type any    `json:"type"`
					Ref  string `json:"$ref"`
				} `json:"properties"`
			} `json:"$defs"`
		}
		require.NoError(t, json.Unmarshal(text, &schema))
		document := strings.TrimSuffix(filepath.Base(file), ".schema.json")
		for object, def := range schema.Defs {
			for name, p := range def.Properties {
				kind := strings.TrimPrefix(p.Ref, "#/$defs/")
				if kind == "" {
					kind = fmt.Sprint(p.Type)
				}
				lines = append(lines, fmt.Sprintf("json %s %s.%s %s", document, object, name, kind))
			}
		}
	}
	return lines
}
