package main

import (
	"fmt"
	"strings"
)

// series is a line of kernels of which the newest package is taken.
type series struct {
	Version string // "6.12"; "" takes the newest of all
	AtLeast string // with it the oldest line from there on
	Arch    string // Debian's name
	Short   bool   // part of the short form
	Ends    bool   // the oldest or the newest: with jvmTests and more clients
}

// allSeries are the kernels of a whole run. 6.16 and newer come and go in a
// distribution's backports, so that one is found by order.
func allSeries() []series {
	return []series{
		{Version: "5.10", Arch: "amd64", Short: true, Ends: true},
		{Version: "6.1", Arch: "amd64"},
		{Version: "6.12", Arch: "amd64"},
		{AtLeast: "6.16", Arch: "amd64"},
		{Arch: "amd64", Short: true, Ends: true},
		{Version: "6.12", Arch: "arm64"},
	}
}

// suites are the suites whose package lists are read.
func suites() []string {
	return []string{"bullseye", "bookworm", "bookworm-backports", "trixie", "trixie-backports"}
}

// modules are what the guests may need; what they depend on comes along.
func modules() []string {
	return []string{"virtio_pci", "virtio_blk", "tcp_diag", "inet_diag", "veth", "dummy", "sch_netem", "overlay", "8021q", "bridge", "ipip", "ip_gre", "vxlan"}
}

// binary is a package whose tests are compiled into the guest.
type binary struct {
	Package string
	Run     string // -test.run, "" runs all
	Skip    string // -test.skip
	Bench   string // -test.bench
	Env     string // NAME=VALUE
	Arm     bool   // run on arm64 too
	Minutes int    // limit
}

// benchTime is how often a benchmark compares: its result is a ratio of medians.
const benchTime = "20x"

// name is the binary's folder in the guest.
func (b binary) name() string { return b.Package[strings.LastIndex(b.Package, "/")+1:] }

const (
	packages    = "github.com/tcpdiag/tcpdiag/internal/"
	featureTest = packages + "test/kernels/guest"
)

// planCases are the cases of TestPlanAgainstTheKernel that do not take half a
// minute.
const planCases = "TestPlanAgainstTheKernel/^(A9:|C3|abort|A3|A5_scaled$|A8)"

// handshakes are the tests of what packets look like: on networks that delay and
// lose them, on stacked devices, with every option of the handshake, of each
// outcome, and of what is known without the packets that leave.
const handshakes = "^Test(Netem|StackedDevices|Conservation|Refused|FastOpen|Stalled|SynCookies|GaveUp|Delayed|DelayedByItsAck|AbortOnOverflow|Restart|PortsUsedAgain|OneWay.*)$"

// impaired is how many clients come across each of TestNetem's networks: on the
// oldest and the newest kernel as many as an emulator can start in some minutes.
func (s series) impaired() string {
	if s.Ends {
		return "TCPDIAG_IMPAIRED=12000"
	}
	return "TCPDIAG_IMPAIRED=1500"
}

// features are the tests of what a kernel has and does, and of the leaves that read
// it: the short form.
func features() []binary {
	return []binary{
		{Package: featureTest, Skip: jvmTests + "|" + parts, Arm: true, Minutes: 10},
		{Package: packages + "sockdiag", Bench: "^Benchmark(Lookup|Scan)$", Arm: true, Minutes: 3},
		{Package: packages + "hostproc", Arm: true, Minutes: 2},
		{Package: packages + "hostproc/threads", Arm: true, Minutes: 2},
		{Package: packages + "hostproc/cgroup", Arm: true, Minutes: 2},
		{Package: packages + "hostproc/netstat", Arm: true, Minutes: 2},
		{Package: packages + "hostproc/openfiles", Arm: true, Minutes: 2},
		{Package: packages + "hostproc/hsperf", Arm: true, Minutes: 2},
	}
}

// networks are the tests of what becomes of packets and clients.
func (s series) networks() []binary {
	return []binary{
		{Package: packages + "netns", Arm: true, Minutes: 2},
		{Package: packages + "metronome", Minutes: 2},
		{Package: packages + "owner", Minutes: 2},
		{Package: packages + "losses", Run: "Kernel", Minutes: 2},
		{Package: packages + "clients", Minutes: 4},
		{Package: packages + "plan", Run: planCases, Minutes: 4},
		{Package: packages + "schedule", Run: scheduleTests, Minutes: 4},
		{Package: packages + "handshake/tap", Run: handshakes, Env: s.impaired(), Arm: true, Minutes: 90},
	}
}

// accounts are the clients that keep their own, across networks that delay and lose packets.
func accounts() []binary {
	return []binary{{Package: packages + "test/accounts", Run: "^Test(Matrix|ShortLooks)$", Minutes: 60}}
}

// million is the boot of a million short clients, each of whose sockets the kernel counts.
const million = "million"

func shortClients(n int) []binary {
	return []binary{{Package: packages + "test/accounts", Run: "^TestMillion$", Env: fmt.Sprintf("TCPDIAG_SHORT_CLIENTS=%d", n), Minutes: 24 * 60}}
}

// scheduleTests are those of conservation and verdicts that do not send a million
// packets, which takes an emulator minutes.
const scheduleTests = "^Test(StuckListener|Conservation|DropsDuringAScan|DropsOfARestartedServer|VerdictOfARestartedServer|DroppedSYNsAreNotCalledACKs)$"

// parts are tests that others run as processes of their own.
const parts = "Here$"

// jvmTests are run on the oldest and the newest kernel: an emulated JVM takes a
// minute to start.
const jvmTests = "^Test(JVMUnderAQuota|PidsLimitStopsThreads)$"

// pairedTest takes two processors.
const pairedTest = "TestExactRequestBesideAWalk"

// slowTest is what a slow machine must get right: see guest/load_linux_test.go.
const slowTest = "^TestRightCause"
