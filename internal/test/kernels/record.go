package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// record is how long a run of all its guests took. The page has the last of the
// whole form and of the short one.
type record struct {
	Commit  string
	Clean   bool    // it began without packages
	CPUs    int     // of the machine
	Load    float64 // its average of five minutes when the run ended
	Fetched float64 // seconds for lists and packages
	Total   float64 // seconds
	OK      bool
}

// forms are the records' names, as the page has them.
func forms() []string { return []string{"whole", "short"} }

func (l *lab) form() string {
	if l.o.Short {
		return "short"
	}
	return "whole"
}

// record keeps how long the run took, unless it was one of some guests only.
func (l *lab) record(begun time.Time, ok bool) error {
	if l.o.Only != "" || l.o.Boots != "" || l.o.Run != "" {
		return nil
	}
	r := record{
		Commit: l.commit, Clean: l.archive.fresh, CPUs: runtime.NumCPU(), Load: loadAverage(),
		Fetched: l.archive.spent.Seconds(), Total: time.Since(begun).Seconds(), OK: ok,
	}
	fmt.Println(r.sentence(l.form()))
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(l.recordOf(l.form()), text, 0o644)
}

func (l *lab) recordOf(form string) string {
	return filepath.Join(filepath.Dir(l.log("")), form+".json")
}

// records writes what is known of both forms.
func (l *lab) records(w io.Writer) error {
	for _, form := range forms() {
		text, err := os.ReadFile(l.recordOf(form))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		fmt.Fprintf(w, "* %s\n", r.sentence(form))
	}
	return nil
}

func (r record) sentence(form string) string {
	state := "with packages fetched before"
	if r.Clean {
		state = "from a clean state"
	}
	end := "all passed"
	if !r.OK {
		end = "some tests failed"
	}
	return fmt.Sprintf("the %s form, %s: %.0f s, %.0f s of it for lists and packages, on %d processors with a load of %.1f at its end; %s; commit %s",
		form, state, r.Total, r.Fetched, r.CPUs, r.Load, end, r.Commit)
}

// loadAverage is the machine's of the last five minutes.
func loadAverage() (load float64) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Fscan(strings.NewReader(string(text)), new(float64), &load)
	}
	return load
}
