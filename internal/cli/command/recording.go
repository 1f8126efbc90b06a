package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/incident"
)

// IncidentDir is where the packages' units keep recordings.
const IncidentDir = "/var/lib/tcpdiag"

// OpenRecording opens a file, the recording of that ID in a directory, or the
// standard input for "-".
func OpenRecording(name, dir string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	if incident.IsID(name) {
		if _, err := os.Stat(name); err != nil {
			name = filepath.Join(dir, name+".tcpdiag")
		}
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; %s", err, latestIn(dir))
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("%s is not a file", name)
	}
	return f, nil
}

// OneRecording is the arguments' check of a command that reads a recording; without one it names the
// latest of a directory.
func OneRecording(dir *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("give a file or the ID of an incident; %s", latestIn(*dir))
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
}

// latestIn names the latest recordings of a directory.
func latestIn(dir string) string {
	ids := recordings(dir)
	if len(ids) == 0 {
		return "there is no recording in " + dir + " (--incident-dir)"
	}
	return fmt.Sprintf("the latest in %s: %s", dir, strings.Join(ids[:min(len(ids), 3)], ", "))
}
