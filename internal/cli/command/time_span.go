package command

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// TimeSpan is a duration flag whose complaint a person understands.
type TimeSpan time.Duration

// Type is what help calls the value.
func (d *TimeSpan) Type() string { return "duration" }

// String is empty for 0, so that help names no default where there is none.
func (d *TimeSpan) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Set takes a duration with its unit.
func (d *TimeSpan) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err == nil {
		*d = TimeSpan(v)
		return nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return fmt.Errorf("a time needs its unit: %ss?", s)
	}
	return fmt.Errorf("give a time with its unit, such as 250ms, 5s or 1m")
}

// TimeVar adds a duration flag.
func TimeVar(flags *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	flags.Var((*TimeSpan)(d), name, usage)
}
