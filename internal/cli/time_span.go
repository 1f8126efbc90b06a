package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// timeSpan is a duration flag whose complaint a person understands.
type timeSpan time.Duration

func (d *timeSpan) Type() string { return "duration" }

// String is empty for 0, so that help names no default where there is none.
func (d *timeSpan) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *timeSpan) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err == nil {
		*d = timeSpan(v)
		return nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return fmt.Errorf("a time needs its unit: %ss?", s)
	}
	return fmt.Errorf("give a time with its unit, such as 250ms, 5s or 1m")
}

// timeVar adds a duration flag.
func timeVar(flags *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	flags.Var((*timeSpan)(d), name, usage)
}
