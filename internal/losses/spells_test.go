package losses

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// overload is the books of a namespace with one listener, by the second.
type overload struct {
	t      *testing.T
	books  *Books
	start  time.Time
	now    time.Time
	counts NamespaceCounts
	drops  uint32
}

func newOverload(t *testing.T) *overload {
	o := &overload{t: t, books: NewBooks(time.Minute), start: time.Unix(1_700_000_000, 0)}
	o.now = o.start
	o.books.Account(listenerID(8080))
	o.drop(0)
	o.checkpoint()
	return o
}

func (o *overload) account() *Account { return o.books.Account(listenerID(8080)) }

// drop has the kernel drop SYNs within one tick.
func (o *overload) drop(packets uint32) {
	o.counts.ListenDrops += uint64(packets)
	o.counts.ListenOverflows += uint64(packets)
	o.drops += packets
	o.books.Tick(o.now, o.counts, []SocketDrops{socket(8080, 1, o.drops)})
}

func (o *overload) checkpoint() {
	o.books.Checkpoint(o.now, model.Counters{"ListenDrops": o.counts.ListenDrops})
}

// wait lets seconds pass, with a checkpoint each and an empty queue.
func (o *overload) wait(seconds int) {
	for range seconds {
		o.now = o.now.Add(time.Second)
		o.account().Observe(Queue{At: o.now, Limit: 5})
		o.drop(0)
		o.checkpoint()
	}
}

func (o *overload) full(ago time.Duration) {
	o.account().Observe(Queue{At: o.now.Add(-ago), Length: 6, Limit: 5})
}

func (o *overload) settle(c model.Cause) {
	o.account().Settle(func(Drop) (model.Cause, model.Evidence, bool) { return c, model.EvidencePhases, true })
}

// lose drops packets of a cause, after as many seconds.
func (o *overload) lose(after int, packets uint32, c model.Cause) {
	o.wait(after)
	o.drop(packets)
	o.settle(c)
}

// lately are the packets of the last ten seconds by cause, within the minute those that
// the window still has.
func (o *overload) lately() (now, minute map[model.Cause]uint64) {
	by := func(l *model.Losses) map[model.Cause]uint64 {
		out := make(map[model.Cause]uint64)
		sum := uint64(0)
		for _, d := range l.By {
			out[d.Cause] += d.Packets
			sum += d.Packets
		}
		require.Equal(o.t, sum, l.DroppedPackets)
		return out
	}
	lately := o.books.Lately(o.account(), false, o.now, model.Quiet)
	require.NotNil(o.t, lately)
	require.Equal(o.t, model.Quiet, lately.Span)
	return by(&lately.Losses), by(o.books.Losses(o.account(), false))
}

func TestTheStatusLooksBackTenSeconds(t *testing.T) {
	o := newOverload(t)
	o.lose(20, 34, model.CauseMaxConnections)
	o.lose(5, 6, model.CauseMaxConnections)
	for second := range 10 {
		now, minute := o.lately()
		require.NotZero(t, now[model.CauseMaxConnections], "second %d", second)
		require.EqualValues(t, 40, minute[model.CauseMaxConnections])
		require.False(t, o.account().Recent(o.now).Over)
		o.wait(1)
	}
	o.wait(1)
	now, minute := o.lately()
	require.Empty(t, now)
	require.EqualValues(t, 40, minute[model.CauseMaxConnections])
	require.Equal(t, &model.Recent{
		Began: o.start.Add(20 * time.Second), Latest: o.start.Add(20 * time.Second), Ended: o.start.Add(25 * time.Second),
		Over: true, Packets: 40, Cause: model.CauseMaxConnections,
	}, o.account().Recent(o.now))
}

// Clients that were turned away repeat what they sent, many at a time and into a queue
// that is empty.
func TestWhatIsRepeatedKeepsItsCause(t *testing.T) {
	o := newOverload(t)
	o.lose(20, 34, model.CauseMaxConnections)
	o.wait(30)
	o.full(10 * time.Millisecond)
	o.drop(5)
	require.False(t, o.account().Waits(), "its cause is that of then")
	now, minute := o.lately()
	require.Empty(t, now)
	require.Equal(t, map[model.Cause]uint64{model.CauseMaxConnections: 39}, minute)
	require.EqualValues(t, 39, o.account().Totals().Dropped[model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}])
	r := o.account().Recent(o.now)
	require.True(t, r.Over)
	require.Equal(t, o.start.Add(20*time.Second), r.Ended, "nobody was turned away since")

	o.wait(1)
	o.full(10 * time.Millisecond)
	o.drop(4)
	require.False(t, o.account().Waits())
	o.drop(5)
	require.True(t, o.account().Waits(), "more within a second than can be repeated")
}

// While the trouble lasts, too, what is repeated says nothing of the server as it is.
func TestWhatIsRepeatedMeanwhileKeepsTheCause(t *testing.T) {
	o := newOverload(t)
	o.lose(20, 34, model.CauseMaxConnections)
	o.wait(3)
	o.full(10 * time.Millisecond)
	o.drop(5)
	o.settle(model.CauseAcceptQueue)
	now, _ := o.lately()
	require.Equal(t, map[model.Cause]uint64{model.CauseMaxConnections: 39}, now)
	o.wait(3)
	o.full(10 * time.Millisecond)
	o.drop(5)
	o.settle(model.CauseOpenFiles)
	now, _ = o.lately()
	require.EqualValues(t, 5, now[model.CauseOpenFiles], "which says why")
	require.Equal(t, o.now, o.account().Recent(o.now).Ended)
}

func TestANewTroubleIsNotTakenForRepeatedPackets(t *testing.T) {
	for name, change := range map[string]func(*overload){
		"the same burst again": func(o *overload) { o.wait(30); o.full(0); o.drop(34) },
		"whoever waits in front of a full queue": func(o *overload) {
			o.wait(30)
			o.full(time.Second)
			o.drop(1)
		},
		"nobody repeats for so long": func(o *overload) { o.wait(131); o.full(0); o.drop(2) },
		"one after the other": func(o *overload) {
			o.wait(30)
			for range 35 {
				o.wait(1)
				o.full(0)
				o.drop(1)
			}
		},
		"many, while it lasts":    func(o *overload) { o.wait(3); o.full(0); o.drop(9) },
		"while the queue is full": func(o *overload) { o.wait(3); o.full(time.Second); o.drop(1) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOverload(t)
			o.lose(20, 34, model.CauseMaxConnections)
			change(o)
			require.True(t, o.account().Waits(), "it gets a cause of its own")
			o.settle(model.CauseSlowAccept)
			now, _ := o.lately()
			require.NotZero(t, now[model.CauseSlowAccept])
			require.False(t, o.account().Recent(o.now).Over)
		})
	}
}

func TestRecentIsOfAQuarterOfAnHour(t *testing.T) {
	o := newOverload(t)
	o.lose(20, 11, model.CauseSlowAccept)
	o.lose(600, 30, model.CauseMaxConnections)
	o.wait(100)
	first := o.account().Recent(o.now)
	require.EqualValues(t, 41, first.Packets)
	require.Equal(t, model.CauseMaxConnections, first.Cause)
	require.Equal(t, 600*time.Second, first.Latest.Sub(first.Began))
	o.wait(220) // the first of them ended too long ago
	second := o.account().Recent(o.now)
	require.EqualValues(t, 30, second.Packets)
	require.Equal(t, second.Latest, second.Began)
	o.wait(600)
	require.Nil(t, o.account().Recent(o.now))
}

func TestAQueueThatWasResetIsRecent(t *testing.T) {
	o := newOverload(t)
	o.wait(20)
	o.account().ResetQueue(Departure{Queued: 7, At: o.now})
	o.wait(20)
	r := o.account().Recent(o.now)
	require.True(t, r.Over)
	require.EqualValues(t, 7, r.QueueResets)
	require.Zero(t, r.Packets)
	require.Equal(t, model.CauseListenerClosed, r.Cause)
}

// What is kept of a listener that flaps is bounded.
func TestSpellsAreBounded(t *testing.T) {
	o := newOverload(t)
	for range 60 {
		o.lose(12, 40, model.CauseMaxConnections)
	}
	require.LessOrEqual(t, len(o.account().spells.list), maxSpells)
	o.wait(11)
	require.EqualValues(t, 60*40, o.account().Recent(o.now).Packets)
}
