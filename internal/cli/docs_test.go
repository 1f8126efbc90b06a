package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const checkout = "../.."

// documents are the pages of the project, by their path from its top.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	require.NoError(t, filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path != checkout && strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "dist"):
			return filepath.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(checkout, path)
		found[relative] = string(text)
		return err
	}))
	require.NotEmpty(t, found["README.md"])
	return found
}

// Each link of a page to a file of the project leads to one, and one to a heading
// to a heading.
func TestDocumentsLinksResolve(t *testing.T) {
	pages := documents(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	checked := 0
	for name, text := range pages {
		for _, m := range link.FindAllStringSubmatch(withoutBlocks(text), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			info, err := os.Stat(filepath.Join(checkout, file))
			require.NoError(t, err, "%s: %s", name, m[1])
			if info.IsDir() {
				file = filepath.Join(file, "README.md")
			}
			if heading != "" && filepath.Ext(file) == ".md" {
				require.Contains(t, headings(pages[file]), heading, "%s: %s", name, m[1])
			}
		}
	}
	require.Greater(t, checked, 50)
}

// withoutBlocks leaves out what is fenced.
func withoutBlocks(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
}

// headings are the anchors that the hosting platform gives to a page's headings.
func headings(text string) (anchors []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(withoutBlocks(text), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(plain, " ", "-"))
	}
	return anchors
}

// usage is a tcpdiag command line in a document.
type usage struct {
	page string
	args []string
}

// usages are those of the blocks of shell commands.
func usages(t *testing.T) (found []usage) {
	t.Helper()
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	command := regexp.MustCompile(`(?:^|[;|&(]\s*|sudo )(?:\./|bin/|\./bin/)?tcpdiag ([^|;&#>)]*)`)
	for page, text := range documents(t) {
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(b[1], "\\\n", " ")) {
				for _, m := range command.FindAllStringSubmatch(line, -1) {
					found = append(found, usage{page, strings.Fields(strings.ReplaceAll(m[1], "'", ""))})
				}
			}
		}
	}
	return found
}

// Each command of a document is one, and takes the flags and values that it is
// given there.
func TestDocumentsUseWhatThereIs(t *testing.T) {
	all := usages(t)
	require.Greater(t, len(all), 15)
	for _, u := range all {
		t.Run(u.page+" "+strings.Join(u.args, " "), func(t *testing.T) {
			root := newRootCommand()
			cmd, rest, err := root.Find(u.args)
			require.NoError(t, err)
			require.NoError(t, cmd.ParseFlags(rest))
			require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()))
		})
	}
}

// Those that need nothing but the program do what they say: the others listen,
// write files or read a process that only the reader's machine has.
func TestDocumentsCommandsRun(t *testing.T) {
	all, ran := usages(t), 0
	top, err := filepath.Abs(checkout)
	require.NoError(t, err)
	for _, u := range all {
		if !needsNothing(t, u) {
			continue
		}
		ran++
		t.Chdir(top) // where the readers of the documents are
		if slices.Contains(u.args, "tcpdiag.yml") {
			t.Chdir(filepath.Dir(filepath.Join(top, u.page)))
		}
		code, _, stderr := call(u.args...)
		require.Zero(t, code, "%s: tcpdiag %s: %s", u.page, strings.Join(u.args, " "), stderr)
	}
	require.Positive(t, ran)
}

// needsNothing: a plan of given numbers, a check of a file of the project, the
// program's version and help.
func needsNothing(t *testing.T, u usage) bool {
	t.Helper()
	cmd, rest, err := newRootCommand().Find(u.args)
	require.NoError(t, err)
	require.NoError(t, cmd.ParseFlags(rest))
	set := given(cmd)
	switch cmd.Name() {
	case "plan":
		return !set["port"]
	case "agent":
		return set["check-config"] && !strings.HasPrefix(cmd.Flag("config").Value.String(), "/")
	case "version":
		return true
	}
	return set["help"]
}

// given are the flags that a command line has.
func given(cmd *cobra.Command) map[string]bool {
	set := make(map[string]bool)
	cmd.Flags().Visit(func(f *pflag.Flag) { set[f.Name] = true })
	return set
}

// What pages name there is: targets, proofs, tests, variables.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	code := programs(t)
	proofs := make(map[string]bool)
	for _, p := range proof.All() {
		proofs[p.Name] = true
	}
	checked := 0
	for page, text := range documents(t) {
		for pattern, known := range map[string]func(name string) bool{
			"`make ([a-z-]+)":                       func(target string) bool { return strings.Contains(code, "\n"+target+":") },
			`PROOF=([a-z-]+)`:                       func(name string) bool { return proofs[name] },
			"`((?:Test|Fuzz|Benchmark)[A-Z][\\w]+)": func(test string) bool { return strings.Contains(code, "func "+test) },
			`\b(TCPDIAG_[A-Z_]+)`:                   func(variable string) bool { return strings.Contains(code, variable) },
		} {
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
				require.True(t, known(m[1]), "%s: there is no %s", page, m[1])
				checked++
			}
		}
	}
	require.Greater(t, checked, 400)
}

// programs are all files that the project is made of but for its pages, what is built and what is fetched.
func programs(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path != checkout && strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "pictures", "node_modules", "dist", "bin"}, name)):
			return filepath.SkipDir
		case entry.Type().IsRegular() && filepath.Ext(name) != ".md":
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}
		return nil
	}))
	return all.String()
}

// A decision is short: its numbers are results. Each page is in the index that it
// belongs to.
func TestDocumentsAreInProportion(t *testing.T) {
	const most = 400
	pages := documents(t)
	decisions := 0
	for name, text := range pages {
		base := filepath.Base(name)
		switch dir := filepath.ToSlash(filepath.Dir(name)); {
		case base == "README.md":
		case dir == "docs/decisions":
			decisions++
			require.LessOrEqual(t, len(strings.Fields(text)), most, "%s: its numbers belong to docs/results", name)
			require.Contains(t, pages["docs/decisions/README.md"], "("+base+")")
		case dir == "docs/results":
			require.Contains(t, pages["docs/results/README.md"], "("+base+")")
		case dir == "docs":
			require.Contains(t, pages["docs/README.md"], "("+base, name)
		}
	}
	require.Greater(t, decisions, 10)
}
