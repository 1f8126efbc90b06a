package recording

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// named is a struct with the names of its fields in a recording.
type named struct {
	t      reflect.Type
	fields string
}

func of[T any](fields string) named { return named{reflect.TypeFor[T](), fields} }

// modelNames are the names with which the model's values are written, whatever their fields are called
// there: "Field" is written under this name, "Field=Name" under another, "-Field" is not written. An
// embedded struct's fields stand among those of the one that has it. Recordings have these names: none may
// get another meaning.
func modelNames() []named {
	const setting = "Value Kind Source Note Uncertain"
	return []named{
		of[model.Listener]("ID Port Inode -User Members Expected Pod Process Connector SynBacklog AcceptQueue Connections " +
			"Acceptor Limits Losses Lately Recent -Totals Verdict Basis Last Elsewhere Draining AddressMissing"),
		of[model.AddressMissing]("HadClients Standby"),
		of[model.ListenerID]("NetNS Address Device"),
		of[model.Pod]("Namespace Name Container UID"),
		of[model.LastListener]("Address Comm PID Pod Seen Ago"),
		of[model.Elsewhere]("Port PID Comm Pod Others"),
		of[model.Limit]("Name Used Max Ratio FullIn"),
		of[model.SynBacklog]("Length Limit"),
		of[model.AcceptQueue]("Length Limit Peak PeakAge Recent -Samples OldestWait Left Patience Probes OldestClient NoAcceptFor TakenAgo StandsFor SocketDrops"),
		of[model.Connections]("At Age Accepted Phases Reset Abandoned ClosedIdle Left LeftFor Silent Recent MaybeBusy Outlived LocalTrying " +
			"Unacknowledged Repeating Forgotten Unread UnreadNext InServiceFor TopPeer TopPeers States Partial Other Subset " +
			"Error"),
		of[model.PeerCount]("Address Connections"),
		of[model.OtherProcess]("PID Comm Connections"),
		of[model.Connector]("Server Framework Version FrameworkVersion Protocol TLS HTTP2 Executor ExecutorUsers Processes " +
			"MaxConnections AcceptCount MaxThreads MinSpareThreads MaxQueue MaxKeepAliveRequests " +
			"ConnectionTimeout KeepAliveTimeout VirtualThreads Gate Backends PoolThreads WithoutPoller Debugger " +
			"WorkerNames Shared BusyThreads -BusyAt CurrentConnections"),
		of[model.Setting[int]](setting),
		of[model.Setting[bool]](setting),
		of[model.Setting[time.Duration]](setting),
		of[model.SharedPool]("Connectors Busy Waiting"),
		of[model.Backend]("Name At Ports Pool"),
		of[model.Pool]("Library Setting Size"),
		of[model.Process]("At PID Comm StartTime OpenFiles OpenFilesLimit Threads Stopped Frozen Dumping Children StoppedChildren StoppedChild ChildrenUnread Container PodUID -Owner " +
			"Busiest Downstream Stacks UserThreads UserThreadsLimit MemoryLimit MemoryUsed PIDsLimit PIDsRefused " +
			"CPULimit InSafepoint OldUsed OldMax SafepointTime GCTime CPUThrottled CPUUsed CPUPeriods " +
			"CPUPeriodsThrottled RunDelay"),
		of[model.Destination]("Address Ports TimeWait Reusable Unowned"),
		of[model.Downstream]("At Age Peers Others ByUser Partial Unconnected Workers"),
		of[model.Peer]("Address Name ByPort Connections InFlight Unknown Connecting Oldest OldestConnect Mean " +
			"AllInFlight AllInRow PerSecond Background Workers Pool"),
		of[model.Workers]("Threads Running Parked Timed Opening Writing ReadingFile Locking Syncing Stating " +
			"ReceivingUDP ReceivingUnix UDPPeer PollerBlocked PollerAway Other"),
		of[model.Stacks]("At Took Threads Workers Groups Others Carriers Virtual VirtualShown Scheduler Deadlocked Cut"),
		of[model.StackGroup]("Threads Worker Idle State Library Application Frames"),
		of[model.VirtualScheduler]("Parallelism Carriers Mounted Queued"),
		of[model.Losses]("DroppedPackets By Burst Unattributed AbandonedRequests QueueResets SocketDrops WorstCase Clients"),
		of[model.Drops]("DropKey Packets Evidence Estimated"),
		of[model.DropKey]("Cause Packet"),
		of[model.Lately]("Span Losses Delta"),
		of[model.Recent]("Began Ended Over Latest ClientsTurnedAway Proxies Packets QueueResets Cause"),
		of[model.Clients]("ClientTotals Waits Observed Waiting Settling Stalling Unreached Estimated PacketsLost AfterDrops " +
			"RefusedAt RefusedBefore Losers Balancer Proxies Flood Arrivals -ReportedFirstBytes"),
		of[model.ClientTotals]("Outcomes Begun Withdrawn LetIn LetInLate GaveUpUnreached ResetInAnswer Aborted Late Alerted TLSBegun TLSEnded Unheard Answers Delays Responses Untracked"),
		of[model.ClientAnswers]("Known Least Why Answered Unanswered Closed Checks Unclear"),
		of[model.ConnectDelays]("Count Sum Bounds Buckets"),
		of[model.FirstResponses]("Count Sum Bounds Buckets"),
		of[model.Waits]("Shortest Longest"),
		of[model.ClientSource]("Addr Clients"),
		of[model.ClientFlood]("Attempts Sources Period Certain"),
		of[model.Arrivals]("Clients First Last Answered"),
		of[model.Verdict]("Status Cause Chain Summary Findings Answer"),
		of[model.Finding]("Code Severity Evidence Advice"),
		of[model.Answer]("What Why Do Not"),
		of[model.Step]("Text Command Setting File From To Limit Effect"),
		of[model.Basis]("Before First Elapsed Interval Delta Sysctl Closed Shown"),
		of[model.Closed]("Queued Ago Part"),
		of[model.Shown]("Verdict Started Last Better Other Cause"),
	}
}

// namesBefore are names that recordings of earlier versions have for others of these.
func namesBefore() map[reflect.Type]map[string]string {
	return map[reflect.Type]map[string]string{
		reflect.TypeFor[model.Connections](): {"Sampled": "Subset"},
	}
}

// layout is how a struct is written.
type layout struct {
	fields []field
	byName map[string][]int // also by the names before
}

type field struct {
	name  string
	index []int
}

// layouts are those of the model's structs, by the names above, and of a recording's own, whose names are
// their tags.
var layouts = sync.OnceValue(func() map[reflect.Type]*layout { //nolint:gochecknoglobals // compiled once
	names := make(map[reflect.Type]string)
	for _, n := range modelNames() {
		names[n.t] = n.fields
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[Line](), reflect.TypeFor[Header](), reflect.TypeFor[Frame](), reflect.TypeFor[Tick](),
		reflect.TypeFor[End](), reflect.TypeFor[Counted](), reflect.TypeFor[Summary](),
	} {
		names[t] = tags(t)
	}
	out := make(map[reflect.Type]*layout, len(names))
	for t := range names {
		out[t] = &layout{byName: make(map[string][]int)}
		out[t].add(t, names, nil)
	}
	return out
})

// tags are the names of a struct by its tags.
func tags(t reflect.Type) (out string) {
	for f := range t.Fields() {
		if name := f.Tag.Get("json"); name != "" {
			out += f.Name + "=" + name + " "
		}
	}
	return out
}

func (l *layout) add(t reflect.Type, names map[reflect.Type]string, above []int) {
	for word := range strings.FieldsSeq(names[t]) {
		name, recorded, other := strings.Cut(word, "=")
		if !other {
			recorded = name
		}
		f, ok := t.FieldByName(name)
		if !ok {
			continue // "-Field"
		}
		index := slices.Concat(above, f.Index)
		if f.Anonymous {
			l.add(f.Type, names, index)
			continue
		}
		l.fields = append(l.fields, field{recorded, index})
		l.byName[recorded] = index
	}
	for was, recorded := range namesBefore()[t] {
		l.byName[was] = l.byName[recorded]
	}
}
