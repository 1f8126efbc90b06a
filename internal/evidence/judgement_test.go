package evidence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	. "github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

var epoch = time.Unix(1_700_000_000, 0)

// at is a reading so far after the first, changed by each of the given.
func at(after time.Duration, changes ...func(*Reading)) Reading {
	r := Reading{
		Began: epoch.Add(after), Ended: epoch.Add(after), Stopped: Known(false),
		Acceptor: Acceptor{TID: 7, Activity: Accepting, Switches: 3, Ran: 3},
		Files:    Known(100), FilesLimit: Known(1000), Safepoint: Known(Safepoint{Begun: 5, Stood: time.Second, WakesFirst: true}), Queued: Known(3),
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func does(a Activity) func(*Reading) { return func(r *Reading) { r.Acceptor.Activity = a } }
func parked(r *Reading)              { r.Acceptor.Activity, r.Acceptor.Futex = Parked, 0x1000 }
func stopped(r *Reading)             { r.Stopped.V = true }
func noSafepoints(r *Reading)        { r.Safepoint = Value[Safepoint]{} }
func noFiles(r *Reading)             { r.Files = Value[int]{} }
func limited(c CPULimit) func(*Reading) {
	return func(r *Reading) { r.CPULimit = Known(c) }
}

func accepted(n uint64) func(*Reading) { return func(r *Reading) { r.Accepted = Known(n) } }

func full(r *Reading)       { r.Files.V = 1000 }
func nearlyFull(r *Reading) { r.Files.V = 990 }

func safepoint(change func(*Safepoint)) func(*Reading) {
	return func(r *Reading) { change(&r.Safepoint.V) }
}

func standsFor(d time.Duration) func(*Reading) {
	return safepoint(func(s *Safepoint) { s.UnderWay, s.Lasted = true, d })
}

func stood(n int64, d time.Duration) func(*Reading) {
	return safepoint(func(s *Safepoint) { s.Begun += n; s.Stood += d })
}

func old(r *Reading)   { r.Safepoint.V.WakesFirst = false }
func plain(r *Reading) { r.Acceptor.Plain = true }

func acceptor(change func(*Acceptor)) func(*Reading) {
	return func(r *Reading) { change(&r.Acceptor) }
}

func noAcceptor(r *Reading) {
	r.Acceptor, r.Missing[SubjectAcceptor] = Acceptor{}, "permission denied"
}

const ms = time.Millisecond

// judged goes by the catalogue, as the program does.
func judged(prev, cur Reading, phases Phases) Judgement {
	var track Track
	if !prev.Began.IsZero() {
		track.Judge(prev, phases, causes.OfMoment)
	}
	return track.Judge(cur, phases, causes.OfMoment)
}

func TestJudge(t *testing.T) {
	walked := func(held, idle, limit int) Phases {
		return Phases{Walked: true, SlotsInUse: held, Idle: idle, MaxConnections: Known(limit)}
	}
	given := func(held, idle, limit int, changes ...func(*Phases)) Phases {
		p := walked(held, idle, limit)
		p.Given = true
		for _, change := range changes {
			change(&p)
		}
		return p
	}
	none := Reading{}
	ran := acceptor(func(a *Acceptor) { a.Switches, a.Ran = a.Switches+1, a.Ran+1 })
	for _, tt := range []struct {
		name      string
		prev, cur Reading
		phases    Phases
		cause     model.Cause
		strength  Strength
	}{
		// The process, before anything else.
		{"stopped", at(0, parked), at(25*ms, parked, stopped), walked(10, 0, 10), model.CauseJVMPause, StrengthProcess},
		{"stopped in the first of them", at(0, stopped), at(25 * ms), Phases{}, model.CauseJVMPause, StrengthProcess},
		{"stopped, one reading", none, at(0, stopped, full), Phases{}, model.CauseJVMPause, StrengthProcess},
		{"frozen in accept(2)", at(0), at(25*ms, stopped), walked(1, 0, 10), model.CauseJVMPause, StrengthProcess},
		{"a pause under way, one reading", none, at(0, standsFor(150*ms), full), Phases{}, model.CauseJVMPause, StrengthProcess},
		{"a pause under way, long after", at(0), at(10*time.Second, standsFor(150*ms)), Phases{}, model.CauseJVMPause, StrengthProcess},
		{"a short safepoint under way", none, at(0, standsFor(20*ms), does(Parked)), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"most of the time at safepoints", at(0), at(200*ms, stood(4, 120*ms)), walked(10, 0, 10), model.CauseJVMPause, StrengthProcess},
		{"some of it, and the limit is not reached", at(0), at(400*ms, stood(4, 120*ms)), walked(1, 0, 10), model.CauseJVMPause, StrengthProcess},
		{"some of it, at the latch", at(0, parked), at(400*ms, parked, stood(4, 120*ms)), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"little of it", at(0), at(time.Second, stood(4, 120*ms)), Phases{}, model.CauseSlowAccept, StrengthAcceptor},
		{
			"throttled", at(0, limited(CPULimit{})), at(time.Second, limited(CPULimit{Periods: 10, Throttled: 9, Withheld: time.Second, Used: 500 * ms})),
			walked(10, 0, 10), model.CauseCPUThrottled, StrengthProcess,
		},
		{
			"throttled, so that a safepoint takes long", at(0, limited(CPULimit{})), at(time.Second, standsFor(600*ms), limited(CPULimit{Periods: 10, Throttled: 9, Withheld: time.Second, Used: 500 * ms})),
			walked(10, 0, 10), model.CauseCPUThrottled, StrengthProcess,
		},
		{
			"a pause, throttled a little", at(0, limited(CPULimit{})), at(time.Second, standsFor(600*ms), limited(CPULimit{Periods: 10, Throttled: 3, Withheld: time.Second, Used: 500 * ms})),
			walked(10, 0, 10), model.CauseJVMPause, StrengthProcess,
		},
		{
			"stopped, and throttled before", at(0, limited(CPULimit{})), at(time.Second, stopped, limited(CPULimit{Periods: 10, Throttled: 9, Withheld: time.Second, Used: 500 * ms})),
			walked(10, 0, 10), model.CauseJVMPause, StrengthProcess,
		},
		{
			"throttled a little", at(0, does(Runnable), limited(CPULimit{})), at(time.Second, limited(CPULimit{Periods: 10, Throttled: 3, Withheld: time.Second, Used: 500 * ms})),
			Phases{},
			model.CauseCPUThrottled, StrengthProcess,
		},
		{
			"throttled a little, and the acceptor is not seen", at(0, noAcceptor, limited(CPULimit{})), at(time.Second, noAcceptor, limited(CPULimit{Periods: 10, Throttled: 3, Withheld: time.Second, Used: 500 * ms})),
			walked(1, 0, 10),
			model.CauseCPUThrottled, StrengthProcess,
		},
		{
			"throttled a little, and it takes connections as they come", at(0, limited(CPULimit{})), at(time.Second, limited(CPULimit{Periods: 10, Throttled: 3, Withheld: time.Second, Used: 500 * ms})),
			Phases{},
			model.CauseSlowAccept, StrengthAcceptor,
		},
		{
			"throttled a little, and paused", at(0, does(Sleeping), limited(CPULimit{})), at(time.Second, does(Sleeping), limited(CPULimit{Periods: 10, Throttled: 3, Withheld: time.Second, Used: 500 * ms})),
			Phases{},
			model.CauseNotAccepting, StrengthAcceptor,
		},
		{
			"throttled a little, and all connections are taken", at(0, noAcceptor, limited(CPULimit{})), at(time.Second, noAcceptor, limited(CPULimit{Periods: 10, Throttled: 3, Withheld: time.Second, Used: 500 * ms})),
			walked(10, 0, 10),
			model.CauseMaxConnections, StrengthPhases,
		},
		{
			"throttled in a fifth of the periods", at(0, does(Runnable), limited(CPULimit{})), at(time.Second, limited(CPULimit{Periods: 10, Throttled: 2, Withheld: time.Second, Used: 500 * ms})),
			Phases{},
			model.CauseAcceptQueue, StrengthNone,
		},
		{
			"throttled a little, at the latch", at(0, parked, limited(CPULimit{})), at(time.Second, parked, limited(CPULimit{Periods: 10, Throttled: 3, Withheld: time.Second, Used: 500 * ms})),
			Phases{},
			model.CauseMaxConnections, StrengthAcceptor,
		},
		{
			"hardly throttled", at(0, limited(CPULimit{})), at(time.Second, limited(CPULimit{Periods: 10, Throttled: 1, Withheld: time.Second, Used: 500 * ms})),
			Phases{},
			model.CauseSlowAccept, StrengthAcceptor,
		},
		{
			"throttled long before", at(0, limited(CPULimit{})), at(time.Minute, limited(CPULimit{Periods: 10, Throttled: 9, Withheld: time.Second})),
			Phases{},
			model.CauseSlowAccept, StrengthAcceptor,
		},
		{
			"waits for a CPU", at(0, does(Runnable)), at(25*ms, does(Runnable)),
			walked(3, 0, 10), model.CauseCPUSaturated, StrengthProcess,
		},
		{
			"waits for a CPU, with all connections taken", at(0, does(Runnable)), at(25*ms, does(Runnable)),
			walked(10, 0, 10), model.CauseMaxConnections, StrengthPhases,
		},
		{
			"computes", at(0, does(Runnable)), at(25*ms, does(Runnable), acceptor(func(a *Acceptor) { a.CPUTime = 25 * ms })),
			Phases{},
			model.CauseAcceptQueue, StrengthNone,
		},
		{
			"waited for a CPU", at(0), at(100*ms, ran, acceptor(func(a *Acceptor) { a.RunDelay = 60 * ms })),
			Phases{},
			model.CauseCPUSaturated, StrengthProcess,
		},
		{
			"waited for a CPU, of its limit",
			at(0, limited(CPULimit{})), at(100*ms, ran, limited(CPULimit{Periods: 1, Throttled: 1, Withheld: 60 * ms, Used: 40 * ms}), acceptor(func(a *Acceptor) { a.RunDelay = 60 * ms })),
			walked(1, 0, 10),
			model.CauseCPUThrottled, StrengthProcess,
		},
		{
			"waited for a CPU, of its limit by a quarter",
			at(0, limited(CPULimit{})), at(time.Second, ran, limited(CPULimit{Periods: 10, Throttled: 3, Withheld: 600 * ms, Used: 400 * ms}), acceptor(func(a *Acceptor) { a.RunDelay = 600 * ms })),
			walked(1, 0, 10),
			model.CauseCPUThrottled, StrengthProcess,
		},
		{
			"waited for a CPU, with all connections taken, and throttled a little",
			at(0, does(Runnable), limited(CPULimit{})), at(time.Second, does(Runnable), limited(CPULimit{Periods: 10, Throttled: 3, Withheld: 600 * ms, Used: 400 * ms})),
			walked(10, 0, 10),
			model.CauseMaxConnections, StrengthPhases,
		},
		{
			"waited for a CPU that others had, and throttled in one period",
			at(0, limited(CPULimit{})), at(time.Second, ran, limited(CPULimit{Periods: 10, Throttled: 1, Withheld: 20 * ms, Used: time.Second}), acceptor(func(a *Acceptor) { a.RunDelay = 600 * ms })),
			Phases{},
			model.CauseCPUSaturated, StrengthProcess,
		},
		{
			"waited long before", at(0), at(time.Minute, ran, acceptor(func(a *Acceptor) { a.RunDelay = 50 * time.Second })),
			Phases{},
			model.CauseSlowAccept, StrengthAcceptor,
		},

		// Open files.
		{"no files", at(0, does(Sleeping)), at(25*ms, does(Sleeping), full), walked(10, 0, 10), model.CauseOpenFiles, StrengthFiles},
		{"no files, one reading", none, at(0, does(Sleeping), full), Phases{}, model.CauseOpenFiles, StrengthFiles},
		{"no files, the acceptor is not readable", none, at(0, noAcceptor, full), Phases{}, model.CauseOpenFiles, StrengthFiles},
		{"no files by an old listing", none, at(0, noAcceptor, full, func(r *Reading) { r.FilesAge = 6 * time.Second }), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"no files by an old listing, backing off", none, at(0, does(Sleeping), full, func(r *Reading) { r.FilesAge = 6 * time.Second }), Phases{}, model.CauseOpenFiles, StrengthFiles},
		{"few files are left, and all connections are taken", none, at(0, noAcceptor, nearlyFull), walked(10, 0, 10), model.CauseMaxConnections, StrengthPhases},
		{"few files are left, and connections are free", none, at(0, noAcceptor, nearlyFull), walked(5, 0, 10), model.CauseOpenFiles, StrengthFiles},
		{"few files are left, and the acceptor backs off", none, at(0, does(Sleeping), nearlyFull), walked(10, 0, 10), model.CauseOpenFiles, StrengthFiles},
		{"few files, at the latch", at(0, parked, full), at(25*ms, parked, full), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"few files, and connections are taken", at(0, full), at(25*ms, full), Phases{}, model.CauseSlowAccept, StrengthAcceptor},
		{"no limit of files", none, at(0, noAcceptor, full, func(r *Reading) { r.FilesLimit = Value[int]{} }), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"paused", at(0, does(Sleeping)), at(25*ms, does(Sleeping)), Phases{}, model.CauseNotAccepting, StrengthAcceptor},
		{"paused, and connections are accepted meanwhile", at(0, does(Sleeping), accepted(1)), at(25*ms, does(Sleeping), accepted(2)), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"asleep, and how many files are open is not known", at(0, does(Sleeping)), at(25*ms, does(Sleeping), func(r *Reading) { r.Files = Value[int]{} }), Phases{}, model.CauseAcceptQueue, StrengthNone},

		// The latch.
		{"the latch", at(0, parked), at(20*ms, parked), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"the latch, whatever the configuration says", at(0, parked), at(20*ms, parked), walked(1, 0, 10), model.CauseMaxConnections, StrengthAcceptor},
		{"the latch, idle connections", at(0, parked), at(20*ms, parked), walked(10, 6, 10), model.CauseKeepAliveIdle, StrengthAcceptor},
		{"the latch, idle connections long ago", at(0, parked), at(20*ms, parked), Phases{Walked: true, SlotsInUse: 10, Idle: 9, Age: time.Minute}, model.CauseMaxConnections, StrengthAcceptor},
		{"parked, one reading", none, at(20*ms, parked), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"parked, too close", at(0, parked), at(19*ms, parked), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"parked elsewhere", at(0, parked), at(20*ms, parked, acceptor(func(a *Acceptor) { a.Futex++ })), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"parked, another thread", at(0, parked), at(20*ms, parked, acceptor(func(a *Acceptor) { a.TID++ })), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"parked, woken between", at(0, parked), at(20*ms, parked, acceptor(func(a *Acceptor) { a.Switches++ })), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"parked, given a CPU between", at(0, parked), at(20*ms, parked, acceptor(func(a *Acceptor) { a.Ran++ })), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{
			"parked, accepted between", at(0, parked, func(r *Reading) { r.Accepted = Known(uint64(1)) }), at(20*ms, parked, func(r *Reading) { r.Accepted = Known(uint64(2)) }),
			Phases{},
			model.CauseAcceptQueue, StrengthNone,
		},
		{"waiting for memory", at(0, parked, acceptor(func(a *Acceptor) { a.OnStack = true })), at(20*ms, parked, acceptor(func(a *Acceptor) { a.OnStack = true })), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"held at a safepoint", at(0, parked, standsFor(10*ms)), at(20*ms, parked, standsFor(30*ms)), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"held at a safepoint that has ended", at(0, parked), at(20*ms, parked, stood(0, 30*ms)), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"held at a safepoint that has begun", at(0, parked), at(20*ms, parked, stood(1, 0)), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"slept through two safepoints", at(0, parked), at(20*ms, parked, stood(2, 5*ms)), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"slept through two safepoints of an old JVM", at(0, parked, old), at(20*ms, parked, old, stood(2, 5*ms)), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"slept through two safepoints of an old JVM, for long", at(0, parked, old), at(time.Second, parked, old, stood(2, 5*ms)), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"the latch of an old JVM", at(0, parked, old), at(20*ms, parked, old), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"the latch of an old JVM, for long", at(0, parked, old), at(time.Second, parked, old), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"a mutex", at(0, parked, plain), at(20*ms, parked, plain), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"the latch of an old C library", at(0, parked, plain), at(time.Second, parked, plain), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"one may be under way", at(0, parked), at(100*ms, parked, safepoint(func(s *Safepoint) { s.Unclear = true })), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"one may be under way, for long", at(0, parked), at(time.Second, parked, safepoint(func(s *Safepoint) { s.Unclear = true })), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{
			"slept through two safepoints, another may be under way", at(0, parked), at(20*ms, parked, stood(3, 5*ms), safepoint(func(s *Safepoint) { s.Unclear = true })),
			Phases{},
			model.CauseMaxConnections, StrengthAcceptor,
		},
		{"safepoints not readable", at(0, parked, noSafepoints), at(20*ms, parked, noSafepoints), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"safepoints not readable, for long", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"calls not readable", at(0, does(Asleep)), at(time.Second, does(Asleep)), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"calls not readable, for long", at(0, does(Asleep)), at(2*time.Second, does(Asleep)), Phases{}, model.CauseMaxConnections, StrengthAcceptor},
		{"calls not readable, an empty queue", at(0, does(Asleep), func(r *Reading) { r.Queued.V = 0 }), at(2*time.Second, does(Asleep)), Phases{}, model.CauseAcceptQueue, StrengthNone},

		// A sleep at a safepoint that cannot be seen: 100 files are open.
		{"safepoints not readable, for long, and connections are free", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(180, 100, 8192), model.CauseAcceptQueue, StrengthNone},
		{"the same, most of them idle", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(180, 170, 8192), model.CauseAcceptQueue, StrengthNone},
		{"the same, not counted", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(0, 0, 8192, func(p *Phases) { p.Walked = false }), model.CauseAcceptQueue, StrengthNone},
		{"the same, counted at the limit long ago", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(8192, 0, 8192, func(p *Phases) { p.Age = time.Minute }), model.CauseAcceptQueue, StrengthNone},
		{"without a limit", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(180, 0, -1), model.CauseAcceptQueue, StrengthNone},
		{"one may be under way, for long, and connections are free", at(0, parked), at(time.Second, parked, safepoint(func(s *Safepoint) { s.Unclear = true })), given(180, 0, 8192), model.CauseAcceptQueue, StrengthNone},
		{"calls not readable, nor safepoints, for long, and connections are free", at(0, does(Asleep), noSafepoints), at(2*time.Second, does(Asleep), noSafepoints), given(180, 0, 8192), model.CauseAcceptQueue, StrengthNone},
		{"no safepoint was under way, whatever is counted", at(0, parked), at(20*ms, parked), given(180, 0, 8192), model.CauseMaxConnections, StrengthAcceptor},
		{"few are counted, and as many files are open: clients may have reset the others", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(4, 0, 10), model.CauseMaxConnections, StrengthAcceptor},
		{"nearly as many files are open", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(4, 0, 110), model.CauseMaxConnections, StrengthAcceptor},
		{"open files cannot be counted", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints, noFiles), given(180, 0, 8192), model.CauseMaxConnections, StrengthAcceptor},
		{"they were listed before it slept", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints, func(r *Reading) { r.FilesAge = 2 * time.Second }), given(180, 0, 8192), model.CauseMaxConnections, StrengthAcceptor},
		{"the limit may be overruled", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(180, 0, 8192, func(p *Phases) { p.Uncertain = true }), model.CauseMaxConnections, StrengthAcceptor},
		{"the limit is a default", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), walked(180, 0, 8192), model.CauseMaxConnections, StrengthAcceptor},
		{"the limit is not known", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(180, 0, 0, func(p *Phases) { p.MaxConnections = Value[int]{} }), model.CauseMaxConnections, StrengthAcceptor},
		{"they are taken", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(8192, 0, 8192), model.CauseMaxConnections, StrengthAcceptor},
		{"they are taken, most of them idle", at(0, parked, noSafepoints), at(time.Second, parked, noSafepoints), given(8192, 8000, 8192), model.CauseKeepAliveIdle, StrengthAcceptor},

		// Connections, and a burst.
		{"takes connections", at(0), at(20 * ms), Phases{}, model.CauseSlowAccept, StrengthAcceptor},
		{"takes connections, one reading", none, at(20 * ms), Phases{}, model.CauseAcceptQueue, StrengthNone},
		{"at the limit by count", none, at(0, noAcceptor), walked(10, 0, 10), model.CauseMaxConnections, StrengthPhases},
		{"at the limit by count, but for what a walk misses", none, at(0, noAcceptor), walked(98, 0, 100), model.CauseMaxConnections, StrengthPhases},
		{"at the limit by count, idle", none, at(0, noAcceptor), walked(10, 9, 10), model.CauseKeepAliveIdle, StrengthPhases},
		{"at the limit long ago", none, at(0, noAcceptor), Phases{Walked: true, Age: 6 * time.Second, SlotsInUse: 10, MaxConnections: Known(10)}, model.CauseAcceptQueue, StrengthNone},
		{"room", none, at(0, noAcceptor), walked(97, 0, 100), model.CauseAcceptQueue, StrengthNone},
		{"room, and accepts go on", at(0, noAcceptor, accepted(1)), at(20*ms, noAcceptor, accepted(2)), walked(97, 0, 100), model.CauseSlowAccept, StrengthPhases},
		{"room, and nothing is accepted", at(0, noAcceptor, accepted(1)), at(20*ms, noAcceptor, accepted(1)), walked(97, 0, 100), model.CauseAcceptQueue, StrengthNone},
		{"no limit of connections, and accepts go on", at(0, noAcceptor, accepted(1)), at(20*ms, noAcceptor, accepted(2)), walked(97, 0, -1), model.CauseSlowAccept, StrengthPhases},
		{"running, and accepts go on", at(0, does(Runnable), accepted(1)), at(20*ms, does(Runnable), accepted(2), acceptor(func(a *Acceptor) { a.CPUTime = 9 * ms })), Phases{}, model.CauseSlowAccept, StrengthAcceptor},
		{"room long ago", none, at(0, noAcceptor), Phases{Walked: true, Age: 2 * time.Second, SlotsInUse: 1, MaxConnections: Known(10)}, model.CauseAcceptQueue, StrengthNone},
		{"room by a part", none, at(0, noAcceptor), Phases{Walked: true, Partial: true, SlotsInUse: 1, MaxConnections: Known(10)}, model.CauseAcceptQueue, StrengthNone},
		{"room below an uncertain limit", none, at(0, noAcceptor), Phases{Walked: true, Uncertain: true, SlotsInUse: 1, MaxConnections: Known(10)}, model.CauseAcceptQueue, StrengthNone},
		{"no limit known", none, at(0, noAcceptor), Phases{Walked: true, SlotsInUse: 1}, model.CauseAcceptQueue, StrengthNone},
		{"nothing at all", none, Reading{}, Phases{}, model.CauseAcceptQueue, StrengthNone},
	} {
		j := judged(tt.prev, tt.cur, tt.phases)
		require.Equal(t, tt.cause, j.Cause, "%s: %+v", tt.name, j)
		require.Equal(t, tt.strength, j.Strength, "%s: %+v", tt.name, j)
		require.Equal(t, j.Cause == model.CauseAcceptQueue, j.Strength == StrengthNone, tt.name)
		require.Equal(t, tt.strength == StrengthNone, len(j.Missing) > 0, "%s: %+v", tt.name, j)
		require.Contains(t, model.DropCauses(), j.Cause)
	}
}

func TestWeak(t *testing.T) {
	blind := func(r *Reading) {
		noSafepoints(r)
		r.Missing[SubjectSafepoints] = "permission denied"
	}
	j := judged(at(0, parked, blind), at(time.Second, parked, blind), Phases{})
	require.True(t, j.Weak)
	require.Equal(t, []Missing{{SubjectSafepoints, "permission denied"}}, j.Missing)
	require.False(t, judged(at(0, blind), at(time.Second, blind), Phases{}).Weak, "in accept it is held nowhere")
	require.False(t, judged(at(0, parked), at(time.Second, parked), Phases{}).Weak)
}

// TestMayBeHeld: of an acceptor that sleeps as at a safepoint that cannot be seen, in front of free connections, it is not said
// that it waits at their limit, and why nothing is known is said.
func TestMayBeHeld(t *testing.T) {
	blind := func(r *Reading) {
		noSafepoints(r)
		r.Missing[SubjectSafepoints] = "permission denied"
	}
	j := judged(at(0, parked, blind), at(time.Second, parked, blind), Phases{Walked: true, SlotsInUse: 180, MaxConnections: Known(8192), Given: true})
	require.Empty(t, j.Acceptor)
	require.False(t, j.Weak)
	require.False(t, j.Pending)
	require.Equal(t, []Missing{
		{SubjectSafepoints, "permission denied"},
		{SubjectAcceptor, "it sleeps as at the limit of connections, and as at a safepoint, and connections are free"},
	}, j.Missing)
	j = judged(at(0, parked, blind), at(time.Second, parked, blind), Phases{Walked: true, SlotsInUse: 4, MaxConnections: Known(10), Given: true})
	require.Equal(t, model.AcceptorAtLimit, j.Acceptor)
	require.True(t, j.Weak)
}

func TestPending(t *testing.T) {
	require.True(t, judged(Reading{}, at(0, parked), Phases{}).Pending)
	require.True(t, judged(at(0, parked), at(ms, parked), Phases{}).Pending)
	require.True(t, judged(at(0, parked, noSafepoints), at(100*ms, parked, noSafepoints), Phases{}).Pending)
	require.False(t, judged(at(0, does(Sleeping)), at(100*ms, does(Sleeping)), Phases{}).Pending)
	require.False(t, judged(at(0), at(100*ms), Phases{}).Pending)
	room := Phases{Walked: true, SlotsInUse: 15, MaxConnections: Known(60)}
	require.True(t, judged(at(0, parked, noSafepoints), at(100*ms, parked, noSafepoints), room).Pending, "room by what is configured, but it sleeps")
	require.False(t, judged(at(0, noAcceptor), at(100*ms, noAcceptor), room).Pending)
}

// Each subject that is missing is named, each once.
func TestMissing(t *testing.T) {
	for _, tt := range []struct {
		cur    Reading
		phases Phases
		want   []Missing
	}{
		{at(0, noAcceptor), Phases{}, []Missing{{SubjectAcceptor, "permission denied"}, {SubjectConnections, "they were not counted"}, {SubjectLimit, "it is not known"}}},
		{at(0, does(Elsewhere)), Phases{Walked: true, Age: 3 * time.Second, MaxConnections: Known(9)}, []Missing{
			{SubjectAcceptor, "it is in a system call other than accept"}, {SubjectConnections, "they were counted 3.0 s before"},
		}},
		{at(0, parked, acceptor(func(a *Acceptor) { a.OnStack = true })), Phases{Walked: true, Partial: true, MaxConnections: Known(9), Uncertain: true}, []Missing{
			{SubjectAcceptor, "it waits inside the JVM, as for memory"},
			{SubjectConnections, "they were counted in part"},
			{SubjectLimit, "it may be overruled by what could not be read"},
		}},
		{at(0, does(Unknown)), Phases{Walked: true}, []Missing{{SubjectAcceptor, "it was not found"}, {SubjectLimit, "it is not known"}}},
		{at(0, parked), Phases{Walked: true}, []Missing{{SubjectAcceptor, "it was read once"}, {SubjectLimit, "it is not known"}}},
	} {
		require.Equal(t, tt.want, judged(Reading{}, tt.cur, tt.phases).Missing)
	}
	j := judged(at(0, parked), at(20*ms, does(Runnable)), Phases{Walked: true})
	require.Equal(t, Missing{SubjectAcceptor, "it was not in the same place in two readings"}, j.Missing[0])
	seen := map[string]bool{}
	for s := range NumSubjects {
		require.False(t, seen[s.String()])
		seen[s.String()] = true
	}
}
