package diagnosis

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestDropCause(t *testing.T) {
	calm := tomcat(200, 8192, 100).inService(50).do(totals(0, 0, 0))
	taken := func() look { return tomcat(200, 100, 100).pool(200).queue(101, time.Second) }
	for name, c := range map[string]struct {
		before, now look
		want        model.Cause
	}{
		"connections taken": {taken().inService(100), taken().inService(100), maxConns},
		// A burst from nothing: the limit was reached between the snapshots.
		"taken at the end only":                         {tomcat(200, 100, 100), taken().inService(100), maxConns},
		"taken at the start only":                       {taken().inService(100), tomcat(200, 100, 100).inService(3), maxConns},
		"two short of 100, within what a walk can miss": {taken().inService(98), taken().inService(98), maxConns},
		"three short":                                   {taken().inService(97), taken().inService(97), model.CauseSlowAccept},
		"one short of three is not the limit":           {tomcat(2, 3, 1).inService(2), tomcat(2, 3, 1).inService(2), model.CauseSlowAccept},
		"held by connections that were reset":           {taken().inService(40).do(gone(60)), taken().inService(40).do(gone(60)), maxConns},
		"mostly idle":                                   {taken().inService(10).idle(90), taken().inService(10).idle(90), keepAlive},
		"idle before, busy now":                         {taken().inService(10).idle(90), taken().inService(90).idle(10), maxConns},
		"half of them idle is not most":                 {taken().inService(50).idle(50), taken().inService(50).idle(50), maxConns},
		"unclassified is never idle":                    {taken().with(model.Unclassified, 100), taken().with(model.Unclassified, 100), maxConns},
		"stopped":                                       {calm, tomcat(200, 8192, 100).do(func(l *model.Listener) { l.Process.Stopped = true }), model.CauseJVMPause},
		"stopped before, and going on":                  {tomcat(200, 8192, 100).do(func(l *model.Listener) { l.Process.Stopped = true }), calm, model.CauseJVMPause},
		"out of files":                                  {calm, tomcat(200, 8192, 100).inService(900).do(files(1020, 1024)), model.CauseOpenFiles},
		"a pause":                                       {calm, tomcat(200, 8192, 100).do(totals(400*time.Millisecond, 0, 0)), model.CauseJVMPause},
		"a collection under way":                        {calm, tomcat(200, 8192, 100).do(totals(0, 0, 0)).do(standing(300 * time.Millisecond)), model.CauseJVMPause},
		"one that has only begun":                       {calm, tomcat(200, 8192, 100).do(totals(0, 0, 0)).do(standing(100 * time.Millisecond)), model.CauseSlowAccept},
		"one that outlasts looks":                       {tomcat(200, 8192, 100).do(totals(0, 0, 0)).do(standing(2 * time.Second)), tomcat(200, 8192, 100).do(totals(2100*time.Millisecond, 0, 0)), model.CauseJVMPause},
		"a collection in a single look":                 {look{}, tomcat(200, 8192, 100).do(standing(time.Second)), model.CauseJVMPause},
		"pauses as usual":                               {calm, tomcat(200, 8192, 100).do(totals(20*time.Millisecond, 0, 0)), model.CauseSlowAccept},
		"throttled in an eighth of the periods":         {calm, tomcat(200, 8192, 100).do(cpu(300*time.Millisecond, time.Second, 5, 40)), model.CauseSlowAccept},
		"throttled by less than half, and it accepts":   {calm, tomcat(200, 8192, 100).do(totals(0, 300*time.Millisecond, 0)).do(acceptor(model.AcceptorAccepts)), model.CauseSlowAccept},
		"throttled by half, and it accepts":             {calm, tomcat(200, 8192, 100).do(totals(0, 600*time.Millisecond, 0)).do(acceptor(model.AcceptorAccepts)), model.CauseCPUThrottled},
		"throttled":                                     {calm, tomcat(200, 8192, 100).do(totals(0, 300*time.Millisecond, 0)), model.CauseCPUThrottled},
		// Threads that wait for a CPU, of which the limit withholds nothing.
		"the JVM's own threads wait for a CPU, 20 handlers do not": {calm, tomcat(200, 8192, 100).inService(20).do(noLimits).do(totals(0, 0, 600*time.Millisecond)), acceptQueue},
		"threads wait for a CPU":                                   {calm, tomcat(200, 8192, 100).do(totals(0, 0, 1500*time.Millisecond)), model.CauseCPUSaturated},
		"threads wait for a CPU, and the limit may be reached":     {calm, tomcat(200, 8192, 100).do(inDoubt).do(totals(0, 0, 1500*time.Millisecond)), acceptQueue},
		"the same, and there is no acceptor":                       {calm, tomcat(200, 8192, 100).do(inDoubt).do(acceptor(model.AcceptorMissing)).do(totals(0, 0, 1500*time.Millisecond)), model.CauseCPUSaturated},
		"handlers wait for a CPU, whatever the limit is":           {calm, tomcat(200, 8192, 100).inService(2).do(inDoubt).do(totals(0, 0, 1500*time.Millisecond)), model.CauseCPUSaturated},
		"totals of another process":                                {calm, tomcat(200, 8192, 100).do(totals(time.Hour, 0, 0)).do(func(l *model.Listener) { l.Process.PID++ }), model.CauseSlowAccept},
		"totals that went backwards":                               {tomcat(200, 8192, 100).do(totals(time.Hour, time.Hour, time.Hour)), calm, model.CauseSlowAccept},
		"none of it":                                               {calm, calm, model.CauseSlowAccept},
		"maxConnections not known":                                 {calm, tomcat(200, 8192, 100).unknownLimits(), acceptQueue},
		"maxConnections not known, but a stop":                     {calm, tomcat(200, 8192, 100).unknownLimits().do(func(l *model.Listener) { l.Process.Stopped = true }), model.CauseJVMPause},
		"not all connections were counted":                         {calm, tomcat(200, 8192, 100).inService(3).do(totals(0, 0, 0)).do(partly), acceptQueue},
		"the limit is reached by those that were":                  {taken().inService(3).do(partly), taken().inService(100).do(partly), maxConns},
		"maxConnections unlimited":                                 {calm, tomcat(200, -1, 100).inService(9000), model.CauseSlowAccept},
		"NIO2, and all workers are busy":                           {workers(6, 1), workers(6, 1), threads},
		"the same with an acceptor":                                {workers(6, 1).do(nio), workers(6, 1).do(nio), model.CauseSlowAccept},
		"NIO2, all were busy once":                                 {workers(4, 1), workers(6, 1), acceptQueue},
		"NIO2, all were busy before":                               {workers(6, 1), workers(4, 1), acceptQueue},
		"NIO2, in a single look":                                   {look{}, workers(6, 1), acceptQueue},
		"NIO2, many more were accepted":                            {workers(6, 1), workers(6, 9), acceptQueue},
		"NIO2, nobody waited":                                      {workers(6, 1).queue(0, 0), workers(6, 1), acceptQueue},
		"NIO2, workers were free":                                  {workers(3, 0), workers(4, 0), model.CauseSlowAccept},
		"NIO2, all connections are taken as well":                  {workers(6, 54), workers(6, 54), maxConns},
		"NIO2, how many are busy is not known":                     {workers(0, 0).do(encrypted).with(model.Unclassified, 7), workers(0, 0).do(encrypted).with(model.Unclassified, 7), model.CauseSlowAccept},
		"a single look":                                            {look{}, taken().inService(100), maxConns},
		"no look at all":                                           {look{}, look{}, acceptQueue},
		"nothing but a queue":                                      {look{}, look{&model.Listener{AcceptQueue: &model.AcceptQueue{}}}, acceptQueue},
	} {
		t.Run(name, func(t *testing.T) {
			got := causes.DropCause(c.before.Listener, c.now.Listener, time.Second, reading.DefaultThresholds())
			require.Equal(t, c.want, got)
			require.True(t, slices.Contains(model.DropCauses(), got), "%q has no series", got)
		})
	}
}

// workers are six of NIO2, that number of them with a request, and clients in front of them.
func workers(busy, waiting int) look {
	return tomcat(6, 60, 20).pool(6).inService(busy).waiting(waiting).queue(21, time.Second).do(func(l *model.Listener) {
		l.Connector.Protocol, l.AcceptQueue.NoAcceptFor = "http-nio2", new(time.Duration)
	})
}

func encrypted(l *model.Listener) { l.Connector.TLS = true }

func nio(l *model.Listener) { l.Connector.Protocol = "http-nio" }

// inDoubt is a limit that what could not be read may overrule.
func inDoubt(l *model.Listener) { l.Connector.MaxConnections.Uncertain = true }

// standing is a safepoint that is under way.
func standing(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Process.InSafepoint = &d }
}

func TestWorstCase(t *testing.T) {
	losses := func(p model.Packet) *model.Losses {
		return tomcat(1, 1, 1).lost(maxConns, p, 3).Losses
	}
	abort := map[string]int{"tcp_abort_on_overflow": 1}
	for name, c := range map[string]struct {
		losses *model.Losses
		delta  model.Counters
		sysctl map[string]int
		want   []string
	}{
		"one look":                         {nil, nil, nil, nil},
		"nothing lost":                     {&model.Losses{}, nil, nil, nil},
		"SYNs":                             {losses(syn), nil, nil, []string{SeenConnectTimeout}},
		"SYNs are dropped in silence":      {losses(syn), nil, abort, []string{SeenConnectTimeout}},
		"final ACKs":                       {losses(ack), nil, nil, []string{SeenReadTimeout}},
		"final ACKs, abort_on_overflow":    {losses(ack), nil, abort, []string{SeenReset}},
		"unknown":                          {losses(unknownPacket), nil, nil, []string{SeenConnectTimeout, SeenReadTimeout}},
		"unknown, abort_on_overflow":       {losses(unknownPacket), nil, abort, []string{SeenConnectTimeout, SeenReset}},
		"cookies came back as well":        {losses(unknownPacket), model.Counters{"SyncookiesRecv": 4}, abort, []string{SeenConnectTimeout, SeenReadTimeout, SeenReset}},
		"abandoned":                        {&model.Losses{AbandonedRequests: 1}, nil, nil, []string{SeenReadTimeout}},
		"the listener closed":              {&model.Losses{QueueResets: 1}, nil, nil, []string{SeenReset}},
		"the SYN queue, kind not known":    {tomcat(1, 1, 1).lost(model.CauseSynBacklog, unknownPacket, 1).Losses, nil, nil, []string{SeenConnectTimeout}},
		"dropped, but not told apart":      {&model.Losses{DroppedPackets: 4, Unattributed: 4}, nil, nil, []string{SeenConnectTimeout, SeenReadTimeout}},
		"unattributed ones are not theirs": {&model.Losses{Unattributed: 9}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, WorstCase(c.losses, c.delta, c.sysctl))
		})
	}
}
