package main

import (
	"fmt"
	"regexp"
)

// plan is a guest to come.
type plan struct {
	series
	Slow  bool
	Boots []boot
}

// boot is one of a guest's: a machine, and what to run on it. Each has a log of its
// own, so that one alone can be repeated.
type boot struct {
	Name    string
	Machine machine
	Run     []binary
	Named   bool // it takes long, and is only run where -boots names it
}

// suite is where the guest has the list.
func (b boot) suite() string { return "/suite." + b.Name }

// plans are the guests of a run: each kernel, and the newest once more on a
// slow machine.
func plans(short bool) []plan {
	var all []plan
	for _, s := range allSeries() {
		if short && !s.Short {
			continue
		}
		all = append(all, plan{series: s, Boots: boots(s, short)})
	}
	if short {
		return all
	}
	slow := boot{Name: "slow", Machine: slowMachine("amd64"), Run: []binary{{Package: featureTest, Run: slowTest, Minutes: 10}}}
	return append(all, plan{series: series{Arch: "amd64"}, Slow: true, Boots: []boot{slow}})
}

// boots are those of a kernel: nearly all on one processor.
func boots(s series, short bool) []boot {
	paired := []binary{{Package: featureTest, Run: "^" + pairedTest + "$", Arm: true, Minutes: 60}}
	all := []boot{
		{Name: "features", Machine: machineFor(s.Arch), Run: s.able(features())},
		{Name: "two", Machine: twoProcessors(s.Arch), Run: paired},
	}
	if short {
		return all
	}
	all = append(all, boot{Name: "networks", Machine: machineFor(s.Arch), Run: s.able(s.networks())})
	if more := s.able(accounts()); len(more) > 0 {
		all = append(all, boot{Name: "accounts", Machine: machineFor(s.Arch), Run: more})
		all = append(all, boot{Name: million, Machine: machineFor(s.Arch), Run: shortClients(1_000_000), Named: true})
	}
	if s.Ends {
		all = append(all, boot{Name: "java", Machine: machineFor(s.Arch), Run: []binary{{Package: featureTest, Run: jvmTests, Minutes: 20}}})
	}
	return all
}

// able leaves out what its architecture does not run.
func (s series) able(all []binary) (some []binary) {
	for _, b := range all {
		if b.Arm || s.Arch != "arm64" {
			some = append(some, b)
		}
	}
	return some
}

// narrowed are the boots that the flags want: some of them, or one with some of the
// guest package's tests, which is not part of the table.
func (o options) narrowed(all []boot) []boot {
	if o.Run != "" {
		b := all[0]
		if paired, err := regexp.MatchString(o.Run, pairedTest); err == nil && paired && len(all) > 1 {
			b = all[1]
		}
		return []boot{{Name: "part", Machine: b.Machine, Run: []binary{{Package: featureTest, Run: o.Run, Minutes: 10}}}}
	}
	if o.Clients > 0 {
		return []boot{{Name: "clients", Machine: all[0].Machine, Run: o.crowd()}}
	}
	var some []boot
	for _, b := range all {
		if wanted, err := regexp.MatchString(o.Boots, b.Name); err == nil && wanted && (o.Boots != "" || !b.Named) {
			some = append(some, b)
		}
	}
	return some
}

// crowd are as many clients as the flag says.
func (o options) crowd() []binary {
	if o.Boots == million {
		return shortClients(o.Clients)
	}
	return []binary{{
		Package: packages + "handshake/tap", Run: "^TestNetem$", Env: fmt.Sprintf("TCPDIAG_IMPAIRED=%d", o.Clients), Arm: true, Minutes: 24 * 60, // of its clock, which jumps
	}}
}
