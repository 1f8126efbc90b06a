package diagnosis

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func keepAliveTimeout(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Connector.KeepAliveTimeout = &model.Setting[time.Duration]{Value: d} }
}

func connectionTimeout(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Connector.ConnectionTimeout = &model.Setting[time.Duration]{Value: d} }
}

func silentClients(n int) func(*model.Listener) {
	return func(l *model.Listener) { l.Connections.Silent = n }
}

// recent are those of the idle connections that had data a moment ago.
func recent(n int) func(*model.Listener) {
	return func(l *model.Listener) { l.Connections.Recent = n }
}

func maybeBusy(n int) func(*model.Listener) {
	return func(l *model.Listener) { l.Connections.MaybeBusy = n }
}

// counted are clients by their handshakes, in all of a minute.
func counted(gaveUp, delayed uint64, waiting int) func(*model.Listener) {
	return func(l *model.Listener) {
		c := &model.Clients{Observed: time.Minute, Waiting: waiting}
		c.Outcomes[model.ClientGaveUp], c.Outcomes[model.ClientDelayed] = gaveUp, delayed
		l.Losses.Clients = c
	}
}

// The numbers of an advice are such as a person would set, and not there yet.
func TestAdviceNumbers(t *testing.T) {
	idle := func() look { return tomcat(200, 100, 50).inService(8).idle(92).queue(51, time.Second) }
	half := func() look {
		return tomcat(200, 500, 100).pool(10).inService(10).with(model.Unclassified, 490).queue(30, time.Second)
	}
	taken := func() look { return tomcat(200, 8192, 100).inService(8192).queue(101, time.Second) }
	free := func(limit int) look { return tomcat(200, 8192, limit).inService(150) }
	open := func(used, most int) look { return tomcat(200, 8192, 100).do(files(used, most)).queue(101, time.Second) }
	for name, c := range map[string]struct {
		now       look
		want, not []string
	}{
		"keepAliveTimeout longer": {idle().do(keepAliveTimeout(time.Minute)), []string{"Lower server.tomcat.keep-alive-timeout from 60 s to 5 s, or raise"}, nil},
		"keepAliveTimeout 2 s": {
			idle().do(keepAliveTimeout(2 * time.Second)), []string{"Raise server.tomcat.max-connections from 100 to", "after 2 s already."}, []string{"to 5 s", "A shorter timeout"},
		},
		"keepAliveTimeout -1":                            {idle().do(standalone).do(keepAliveTimeout(-time.Millisecond)), []string{"Set keepAliveTimeout to 5 s (now idle connections are never closed), or raise"}, []string{"-1"}},
		"keepAliveTimeout unset, connectionTimeout 20 s": {idle().do(connectionTimeout(20 * time.Second)), []string{"Set server.tomcat.keep-alive-timeout to 5 s (unset it is connectionTimeout, 20 s)"}, nil},
		"keepAliveTimeout unset, connectionTimeout 3 s":  {idle().do(connectionTimeout(3 * time.Second)), []string{"after 3 s already."}, []string{"to 5 s"}},
		"used again and again": {
			idle().do(recent(92)).do(keepAliveTimeout(time.Minute)), []string{"Raise server.tomcat.max-connections from 100 to", "a shorter keepAliveTimeout does not end"}, []string{"to 5 s", "A shorter timeout"},
		},
		"some of them used again":     {idle().do(recent(46)).do(keepAliveTimeout(time.Minute)), []string{"Lower server.tomcat.keep-alive-timeout from 60 s to 5 s, or raise"}, nil},
		"both unset":                  {idle(), []string{"to 5 s (unset it is connectionTimeout, 20 to 60 s)"}, nil},
		"idle, with threads to spare": {idle(), []string{"More threads would not help, those there are have nothing to do"}, nil},
		"idle, and every thread is busy": {
			tomcat(5, 20, 3).inService(5).idle(15).queue(4, time.Second),
			[]string{"All threads are busy, too: those let in wait inside, unless server.tomcat.threads.max is raised"},
			[]string{"nothing to do"},
		},
		"clients that connect and send nothing": {
			tomcat(5, 20, 3).idle(20).do(silentClients(20)).do(keepAliveTimeout(time.Minute)).do(connectionTimeout(time.Minute)).queue(4, time.Second),
			[]string{"Lower server.tomcat.connection-timeout from 60 s to 5 s, or raise", "keepAliveTimeout does not concern them"},
			[]string{"keep-alive-timeout", "connect more often"},
		},
		"the same, connectionTimeout 3 s": {
			tomcat(5, 20, 3).idle(20).do(silentClients(20)).do(connectionTimeout(3*time.Second)).queue(4, time.Second),
			[]string{"Raise server.tomcat.max-connections from 20", "ends clients that send nothing after 3 s already."},
			[]string{"to 5 s"},
		},
		"the same, connectionTimeout unset": {tomcat(5, 20, 3).idle(20).do(silentClients(20)).queue(4, time.Second), []string{"to 5 s (unset it is 60 s)"}, nil},
		"the same, connectionTimeout -1":    {tomcat(5, 20, 3).idle(20).do(silentClients(20)).do(connectionTimeout(-1)).queue(4, time.Second), []string{"to 5 s (now a client that sends nothing is never closed)"}, nil},
		"few of the idle have sent nothing": {
			tomcat(5, 20, 3).idle(20).do(silentClients(8)).do(keepAliveTimeout(time.Minute)).queue(4, time.Second),
			[]string{"Lower server.tomcat.keep-alive-timeout from 60 s to 5 s"},
			[]string{"connection-timeout"},
		},
		"clients that do not read": {
			tomcat(5, 20, 3).pool(5).inService(1).with(model.Sending, 4).waiting(8),
			[]string{"Send less, or let a buffering proxy take the responses: 4 of the 5 busy threads have one that its client has not taken yet. Shorten that, or raise server.tomcat.threads.max from 5 to 15"},
			[]string{"wait for"},
		},
		"threads that have left their responses to the kernel": {
			tomcat(5, 20, 3).pool(5).inService(5).with(model.Sending, 7).waiting(8).do(func(l *model.Listener) { l.Connector.BusyThreads = new(5) }),
			[]string{"Shorten what the handlers wait for"},
			[]string{"proxy"},
		},
		"clients most of which read": {
			tomcat(5, 20, 3).pool(5).inService(3).with(model.Sending, 2).waiting(8),
			[]string{"Shorten what the handlers wait for, or raise server.tomcat.threads.max from 5 to 15"},
			[]string{"proxy"},
		},
		"half-sent requests":         {half().do(connectionTimeout(time.Minute)), []string{"lower server.tomcat.connection-timeout to 5 s;"}, nil},
		"half-sent requests for 2 s": {half().do(connectionTimeout(2 * time.Second)), []string{"server.tomcat.connection-timeout ends them after 2 s already;"}, []string{"to 5 s"}},

		"a burst":                       {free(100).lost(model.CauseSlowAccept, syn, 60), []string{"from 100 to 250, then restart"}, []string{"somaxconn"}},
		"more packets than a burst has": {free(100).lost(model.CauseSlowAccept, syn, 61457), []string{"from 100 to 1000, then restart", "A first step: the 61,457 dropped packets"}, []string{"77000"}},
		"a queue of one place":          {free(1).lost(model.CauseSlowAccept, syn, 60), []string{"from 1 to 10, then restart", "A first step"}, nil},
		"many bursts, and how large they are": {
			free(100).lost(model.CauseSlowAccept, syn, 61457).do(func(l *model.Listener) { l.Losses.Burst = 166 }),
			[]string{"from 100 to 400, then restart", "a burst like the largest, of which a second dropped 166 packets, while"},
			[]string{"more than one burst"},
		},
		"the same with a long queue":     {free(4096).lost(model.CauseSlowAccept, syn, 61457), []string{"from 4096 to 10000 and net.core.somaxconn to at least 10000 (now 4096)"}, nil},
		"a minute of retransmissions":    {taken().lost(maxConns, syn, 61457), []string{"from 8192 to 20000", "the 61,457 dropped packets are is not known"}, []string{"87000", "per dropped packet"}},
		"the same before a single place": {tomcat(1, 1, 1).inService(1).queue(2, time.Second).lost(maxConns, syn, 61457), []string{"from 1 to 10 "}, nil},
		"the same, and idle":             {idle().lost(keepAlive, syn, 61457), []string{"from 100 to 1000: "}, nil},
		"150 clients that try again and again": {
			tomcat(60, 60, 20).inService(60).queue(21, time.Second).lost(maxConns, syn, 6000).do(func(l *model.Listener) { l.Losses.Burst = 69 }),
			[]string{"from 60 to 200", "for the clients of the worst second, which dropped 69 packets"},
			[]string{"6000", "per dropped packet"},
		},
		"150 clients, counted by their handshakes": {
			tomcat(60, 60, 20).inService(60).queue(21, time.Second).lost(maxConns, syn, 6000).do(counted(20, 40, 9)),
			[]string{"from 60 to 200", "and the 69 clients for which there was none"},
			[]string{"6000", "packet"},
		},
		"100,000 clients in a minute": {
			tomcat(60, 60, 20).inService(60).queue(21, time.Second).lost(maxConns, syn, 160_000).do(counted(99_000, 1000, 0)),
			[]string{"from 60 to 600", "a first step towards room for the 100,000 clients"},
			[]string{"packet"},
		},
		"a flood has no clients": {
			tomcat(60, 60, 20).inService(60).queue(21, time.Second).lost(maxConns, syn, 6000).do(counted(20, 40, 9)).do(func(l *model.Listener) { l.Losses.Clients.Flood = &model.ClientFlood{} }),
			[]string{"as a first step"},
			[]string{"69 clients"},
		},
		"clients counted for a part of the time": {
			tomcat(60, 60, 20).inService(60).queue(21, time.Second).lost(maxConns, syn, 6000).do(counted(20, 40, 9)).do(func(l *model.Listener) { l.Losses.Clients.Observed = 10 * time.Second }),
			[]string{"as a first step"},
			[]string{"69 clients"},
		},
		"clients counted for nearly all of it, as those of a single look": {
			tomcat(60, 60, 20).inService(60).queue(21, time.Second).lost(maxConns, syn, 6000).do(counted(20, 40, 9)).do(func(l *model.Listener) { l.Losses.Clients.Observed = 50 * time.Second }),
			[]string{"and the 69 clients or more for which there was none"},
			[]string{"as a first step"},
		},
		"a burst of clients": {
			free(100).lost(model.CauseSlowAccept, syn, 600).do(counted(0, 60, 0)), []string{"from 100 to 250", "The queue then holds the 60 clients for which it had no place while"}, []string{"packet"},
		},
		"150 clients, and nobody counted by the second": {
			tomcat(60, 60, 20).inService(60).queue(21, time.Second).lost(maxConns, syn, 6000),
			[]string{"from 60 to 600 ", "as a first step"},
			[]string{"6000 "},
		},
		"longer than the queue is configured": {
			free(128).do(clampTo(128, 5000)).lost(model.CauseSynBacklog, syn, 500), []string{"Restart the server: server.tomcat.accept-count is 5000"}, []string{"from 128"},
		},
		"longer than the queue is configured, and the kernel allows": {
			free(4096).do(clampTo(4096, 20000)).lost(model.CauseSynBacklog, syn, 500), []string{"Raise net.core.somaxconn to at least 10000 (now 4096), then restart"}, []string{"from 4096"},
		},

		"files":                       {open(1024, 1024), []string{"from 1024 to 12000 (LimitNOFILE=12000 "}, []string{"nr_open"}},
		"files, twice is too many":    {open(800000, 800000), []string{"from 800000 to 1048576 (LimitNOFILE=1048576 "}, []string{"nr_open"}},
		"files, no more can be had":   {open(1<<20, 1<<20), []string{"fs.nr_open, 1048576 by default, has to be raised first", "suggest a leak"}, nil},
		"a bounded queue of no place": {tomcat(2, 100, 100).pool(2).inService(2).waiting(1).do(bounded).do(func(l *model.Listener) { l.Connector.MaxQueue.Value = 0 }), []string{"is 0: raise it to 10"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := symptoms.Input{Now: c.now.Listener, Interval: time.Minute, Sysctl: sysctls()}
			if e.Now.Losses != nil && len(e.Now.Losses.By) > 0 && e.Now.Losses.By[0].Cause == model.CauseSynBacklog {
				delete(e.Sysctl, "tcp_syncookies") // with them that queue drops nobody
			}
			v := Judge(e, reading.DefaultThresholds())
			require.NotEmpty(t, v.Findings, v.Summary)
			for _, want := range c.want {
				require.Contains(t, v.Findings[0].Advice, want)
			}
			for _, not := range c.not {
				require.NotContains(t, v.Findings[0].Advice, not)
			}
			requireChanges(t, v)
		})
	}
}

// requireChanges: no advice proposes what is set already, or less of it.
func requireChanges(t *testing.T, v model.Verdict) {
	t.Helper()
	fromTo := regexp.MustCompile(`from (\d+) to (\d+)`)
	for _, f := range v.Findings {
		for _, m := range fromTo.FindAllStringSubmatch(f.Advice, -1) {
			from, err1 := strconv.Atoi(m[1])
			to, err2 := strconv.Atoi(m[2])
			require.NoError(t, err1)
			require.NoError(t, err2)
			require.Greater(t, to, from, f.Advice)
		}
	}
}

// A client that has never asked is no keep-alive client.
func TestSilentClientsAreNamed(t *testing.T) {
	for n, want := range map[int][2]string{
		0:  {"20 of 20 connections, all of them idle;", "(20 idle)"},
		8:  {"all of them idle (8 without a request yet)", "(20 idle, 8 of which have sent nothing yet)"},
		20: {"all of them idle, without a request yet", "(20 idle, which have sent nothing yet)"},
	} {
		now := tomcat(5, 20, 3).idle(20).do(silentClients(n)).queue(4, time.Second)
		v := Judge(symptoms.Input{Now: now.Listener, Interval: time.Minute, Sysctl: sysctls()}, reading.DefaultThresholds())
		require.Equal(t, keepAlive, v.Cause)
		require.Contains(t, v.Summary, want[0])
		require.Contains(t, v.Findings[0].Evidence, want[1])
	}
}

// Of processes that share a port each has the setting.
func TestAdviceForProcessesThatShareAPort(t *testing.T) {
	k := usedUp(12).do(func(l *model.Listener) { l.Connector.Processes = 2 })
	v := Judge(scenario{now: k, before: k}.evidence(), reading.DefaultThresholds())
	require.Contains(t, v.Findings[0].Advice, "raise server.tomcat.threads.max from 6 to 30 in each of the 2 processes that share the port")
}

// As long as the trouble lasts an advised limit only grows, and never beyond the limit in
// force of another time.
func TestAdvisedNumbersAreSteady(t *testing.T) {
	threadsTo := func(v model.Verdict) string {
		for _, s := range v.Answer.Do {
			if s.Limit == reading.StageMaxThreads {
				return s.To
			}
		}
		return ""
	}
	var shown *model.Shown
	judge := func(most, waiting int) model.Verdict {
		l := tomcat(most, 8192, 100).pool(most).inService(most).waiting(waiting)
		v := Judge(symptoms.Input{Now: l.Listener, Before: l.Listener, Elapsed: time.Second, Interval: time.Second, Sysctl: sysctls(), Shown: shown}, reading.DefaultThresholds())
		shown = &model.Shown{Verdict: v, Started: true}
		return v
	}
	require.Equal(t, "80", threadsTo(judge(20, 60)))
	require.Equal(t, "80", threadsTo(judge(20, 34)), "fewer wait")
	require.Equal(t, "100", threadsTo(judge(20, 75)))
	require.Equal(t, "50", threadsTo(judge(40, 5)), "the limit in force was changed")
	shown = nil
	require.Equal(t, "60", threadsTo(judge(20, 34)), "another time")
}

// Of what is no limit the effect is known where all that are turned away are.
func TestStepsThatLetThemIn(t *testing.T) {
	fresh := func() look { return tomcat(200, 8192, 10).pool(10) }
	first := func(s look, sysctl func(*symptoms.Input)) model.Step {
		e := symptoms.Input{Now: s.Listener, Before: fresh().do(stillTry(5)).Listener, Elapsed: time.Second, Interval: 10 * time.Second, Delta: model.Counters{}}
		sysctl(&e)
		return Judge(e, reading.DefaultThresholds()).Answer.Do[0]
	}
	const rule = "nft inet firewall input handle 5 drop"
	require.Equal(t, reading.LimitRule, first(fresh().do(stillTry(8)), moved(rule+" dport 8080", 31)).Limit)
	gaveUp := func(l *model.Listener) { outcome(model.ClientGaveUp, 50)(l); stillTry(20)(l) } // who gives up is counted later than what was dropped
	require.Equal(t, reading.LimitRule, first(fresh().do(gaveUp), moved(rule+" dport 8080", 48)).Limit)
	require.Empty(t, first(fresh().do(gaveUp), moved(rule+" dport 8080", 39)).Limit, "it drops fewer than there are")
	require.Empty(t, first(fresh().do(stillTry(8)), moved(rule, 31)).Limit, "it may be of other ports")

	elsewhere := func(has, asked string, in uint64) string {
		return first(fresh().do(boundTo(has)).do(outcome(model.ClientRefused, 12)).do(refusedAt(asked)).do(func(l *model.Listener) { l.Losses.Clients.LetIn = in }), func(*symptoms.Input) {}).To
	}
	require.Equal(t, "10.0.0.2", elsewhere("127.0.0.1:8080", "10.0.0.2:8080", 0))
	require.Empty(t, elsewhere("127.0.0.1:8080", "10.0.0.2:8080", 5), "it may be bound so on purpose")
	require.Empty(t, elsewhere("10.0.0.1:8080", "203.0.113.2:8080", 5), "likewise")
	require.Equal(t, "0.0.0.0", elsewhere("10.0.0.1:8080", "10.0.0.2:8080", 5), "and those that are let in still are")
	require.Equal(t, "::", elsewhere("0.0.0.0:8080", "[::1]:8080", 0))
}

// A time that is advised can be pasted: Spring Boot reads "5s" and not "5 s", a Connector milliseconds.
func TestTimesAreWrittenAsTheServerReadsThem(t *testing.T) {
	for framework, want := range map[string][3]string{
		"spring-boot": {"server.tomcat.keep-alive-timeout", "1500ms", "5s"}, "": {"keepAliveTimeout", "1500", "5000"},
	} {
		s := &symptoms.Symptoms{Pair: reading.Pair{Now: &model.Listener{Connector: &model.Connector{Framework: framework}}}}
		in := &model.Setting[time.Duration]{Value: 1500 * time.Millisecond}
		step := advice.KeepAliveSetting().ChangeTime(s, in, "End idle connections sooner", 5*time.Second)
		require.Equal(t, want, [3]string{step.Setting, step.From, step.To})
	}
}
