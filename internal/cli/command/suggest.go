package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError adds to the complaint about an unknown flag the one that was probably
// meant.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// unknownCommand is the complaint about a first argument that is neither a command nor
// a port.
func unknownCommand(root *cobra.Command, name string) error {
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %s?", name, strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q; give a command or a port", name)
}

// partOfName is how many letters of a name tell it apart.
const partOfName = 5

// Nearest is the name that differs by at most two letters, or begins so, by the rule
// that cobra has for commands, or of which it is a part; "" where there is none.
func Nearest(name string, names []string) string {
	menu := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, n := range names {
		menu.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	if near := menu.SuggestionsFor(name); len(near) > 0 {
		return near[0]
	}
	for _, n := range names { // --threads is --max-threads
		if len(name) >= partOfName && strings.Contains(n, name) {
			return n
		}
	}
	return ""
}
