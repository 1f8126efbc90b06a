package accounts

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Of a listener and a port whose clients nobody has counted nothing is said: zeros would be a statement.
func TestUnknownIsLeftOut(t *testing.T) {
	at := netip.MustParseAddrPort("0.0.0.0:8080")
	ask := func(accounts map[netip.AddrPort]*Account) *model.Snapshot {
		s := &model.Snapshot{
			Time: time.Unix(1_700_000_000, 0), Interval: 10 * time.Second,
			Listeners: []model.Listener{
				{ID: model.ListenerID{NetNS: 1, Address: at}, Port: 8080, Losses: &model.Losses{}},
				{ID: model.ListenerID{NetNS: 1}, Port: 9090, Losses: &model.Losses{}}, // down
			},
			Targets: []model.Target{{NetNS: 1, Port: 9090}},
		}
		Add(nil, &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: accounts}}}, s)
		return s
	}
	s := ask(nil)
	require.Nil(t, s.Listeners[0].Totals.Clients)
	require.Nil(t, s.Listeners[0].Losses.Clients)
	require.Nil(t, s.Listeners[1].Losses.Clients)
	require.Nil(t, s.Targets[0].Refused)

	s = ask(map[netip.AddrPort]*Account{at: {}, Port(8080): {}, Port(9090): {}})
	require.Zero(t, s.Listeners[0].Totals.Clients.LetIn)
	require.NotNil(t, s.Listeners[0].Losses.Clients)
	require.NotNil(t, s.Listeners[1].Losses.Clients)
	require.Nil(t, s.Listeners[1].Totals.Clients, "nothing listens: whose they were is among the retired")
	require.Zero(t, *s.Targets[0].Refused)
}

// Of a server that was restarted it is not known at once what it speaks: until then its answers stay those of the address, and
// nobody's is counted a second time when it is.
func TestAnswersWhileTheServerIsNotKnownYet(t *testing.T) {
	at := netip.MustParseAddrPort("0.0.0.0:8080")
	now := time.Unix(1_700_000_000, 0)
	a := &Account{Totals: model.ClientTotals{Answers: model.ClientAnswers{Answered: 2_000_000, Unanswered: 5_000}}}
	c := &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: map[netip.AddrPort]*Account{at: a, Port(8080): {}}}}}
	var state *State
	look := func(connector *model.Connector) *model.Listener {
		now = now.Add(time.Second)
		s := &model.Snapshot{Time: now, Interval: 10 * time.Second, Listeners: []model.Listener{{ID: model.ListenerID{NetNS: 1, Address: at}, Port: 8080, Connector: connector, Losses: &model.Losses{}}}}
		state = Add(state, c, s)
		return &s.Listeners[0]
	}
	closed := func() model.ClientAnswers {
		now = now.Add(time.Second)
		s := &model.Snapshot{Time: now, Retired: []model.RetainedTotals{{ID: model.ListenerID{NetNS: 1, Address: at}}}}
		state = Add(state, c, s)
		return s.Retired[0].Totals.Clients.Answers
	}
	http := &model.Connector{Protocol: "http-nio"}
	require.False(t, look(nil).Totals.Clients.Answers.Known, "it is not known what it was before")
	known := look(http).Totals.Clients.Answers
	require.EqualValues(t, 5_000, known.Unanswered)
	require.Equal(t, known.Unanswered, closed().Unanswered)
	for range 2 {
		l := look(nil)
		require.Equal(t, known, l.Totals.Clients.Answers)
		require.Equal(t, known, l.Losses.Clients.Answers)
		now = now.Add(namedIn - 2*time.Second)
		require.Equal(t, known, look(nil).Totals.Clients.Answers)
		closed()
	}
	require.Equal(t, known, look(http).Totals.Clients.Answers)

	look(nil)
	now = now.Add(namedIn)
	require.False(t, look(nil).Totals.Clients.Answers.Known, "it may be another server")
	require.Zero(t, closed().Unanswered)
	look(http)
	require.False(t, look(&model.Connector{Protocol: "https-jsse-nio", TLS: true}).Totals.Clients.Answers.Known)
	require.False(t, look(nil).Totals.Clients.Answers.Known)
}

// Of a server that nothing is known of but the limits given by hand the first byte may be no answer, as with TLS. Who was sent none at
// all had no answer.
func TestAnswersOfAServerThatIsNotKnown(t *testing.T) {
	at := netip.MustParseAddrPort("0.0.0.0:8443")
	a := &Account{Totals: model.ClientTotals{Answers: model.ClientAnswers{Answered: 2_000, Unanswered: 50, Closed: 7, Checks: 3, Unclear: 1}}}
	c := &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: map[netip.AddrPort]*Account{at: a, Port(8443): {}}}}}
	s := &model.Snapshot{Time: time.Unix(1_700_000_000, 0), Interval: time.Minute, Listeners: []model.Listener{{
		ID: model.ListenerID{NetNS: 1, Address: at}, Port: 8443, Losses: &model.Losses{}, Connector: &model.Connector{MaxConnections: &model.Setting[int]{Value: 200}},
	}}}
	state := Add(nil, c, s)
	want := model.ClientAnswers{Least: true, Why: unknownProtocol, Unanswered: 50, Closed: 7}
	require.Equal(t, want, s.Listeners[0].Totals.Clients.Answers)
	require.Equal(t, want, s.Listeners[0].Losses.Clients.Answers)
	require.EqualValues(t, 50, s.Listeners[0].Losses.Clients.TurnedAway())
	require.EqualValues(t, 50, *s.Listeners[0].Recent.ClientsTurnedAway)
	closed := &model.Snapshot{Time: s.Time, Retired: []model.RetainedTotals{{ID: model.ListenerID{NetNS: 1, Address: at}}}}
	Add(state, c, closed)
	require.Equal(t, want, closed.Retired[0].Totals.Clients.Answers)

	limits := s.Listeners[0].Connector
	s.Listeners[0].Connector = &model.Connector{Server: model.ServerOther().Name}
	state = Add(state, c, s)
	require.True(t, s.Listeners[0].Totals.Clients.Answers.Known, "a server that is known")
	s.Listeners[0].Connector = limits
	state = Add(state, c, s)
	require.True(t, s.Listeners[0].Totals.Clients.Answers.Known, "it was restarted, and is not known yet")
	s.Time = s.Time.Add(2 * namedIn)
	Add(state, c, s)
	require.Equal(t, want, s.Listeners[0].Totals.Clients.Answers)
}

// Some protocols have no answers (GELF, syslog, Graphite): of a server whose protocol is not known it is known who had none when clients
// of it are known to have had a byte, whether they have ended or not. Whom it sends away without one is known before.
func TestAnswersOfOneWay(t *testing.T) {
	at := netip.MustParseAddrPort("0.0.0.0:12201")
	type look struct {
		connected  model.Connections
		answers    model.ClientAnswers
		known      bool
		unanswered uint64
	}
	held := func(phase model.Phase, n int) (c model.Connections) {
		c.Accepted, c.Phases[phase] = n, n
		return c
	}
	quiet := held(model.Idle, 300)
	quiet.Silent, quiet.MaybeBusy = 290, 10
	other, unnamed := &model.Connector{Server: model.ServerOther().Name}, (*model.Connector)(nil)
	for _, tt := range []struct {
		name   string
		server *model.Connector
		looks  []look
	}{
		{"nobody has a byte", other, []look{{}, {answers: model.ClientAnswers{Unanswered: 9}}, {connected: held(model.InService, 40), answers: model.ClientAnswers{Unanswered: 900}}, {connected: quiet, answers: model.ClientAnswers{Unanswered: 900}}}},
		{"a scanner has one", other, []look{{connected: held(model.InService, 40), answers: model.ClientAnswers{Unanswered: 40, Answered: 1}}}},
		{"another JVM's", &model.Connector{Server: model.ServerJVM().Name}, []look{{answers: model.ClientAnswers{Unanswered: 9}}}},
		{"nothing is known of it", unnamed, []look{{answers: model.ClientAnswers{Unanswered: 9}}}},
		{"clients are sent away", other, []look{{answers: model.ClientAnswers{Unanswered: 30, Closed: 28}, unanswered: 28}}},
		{"it answers, and then it hangs", other, []look{{answers: model.ClientAnswers{Answered: 3}, known: true}, {answers: model.ClientAnswers{Answered: 3, Unanswered: 900}, known: true, unanswered: 900}}},
		{"the connected are answered, and then it hangs", other, []look{{connected: held(model.Idle, 5), known: true}, {answers: model.ClientAnswers{Unanswered: 900}, known: true, unanswered: 900}}},
		{"cancel requests, beside connections that are answered", other, []look{{connected: held(model.Idle, 5), answers: model.ClientAnswers{Unanswered: 300, Closed: 300}, known: true, unanswered: 300}}},
		{"a Tomcat hangs from the beginning", &model.Connector{Server: model.ServerTomcat().Name, Protocol: "http-nio"}, []look{{answers: model.ClientAnswers{Unanswered: 9}, known: true, unanswered: 9}}},
		{"so does a Jetty", &model.Connector{Server: "jetty"}, []look{{answers: model.ClientAnswers{Unanswered: 9}, known: true, unanswered: 9}}},
	} {
		var state *State
		a := &Account{}
		c := &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: map[netip.AddrPort]*Account{at: a, Port(12201): {}}}}}
		for i, l := range tt.looks {
			a.Totals.Answers = l.answers
			s := &model.Snapshot{
				Time: time.Unix(1_700_000_000+int64(i), 0), Interval: 10 * time.Second,
				Listeners: []model.Listener{{ID: model.ListenerID{NetNS: 1, Address: at}, Port: 12201, Connector: tt.server, Connections: &l.connected, Losses: &model.Losses{}}},
			}
			state = Add(state, c, s)
			for _, answers := range []model.ClientAnswers{s.Listeners[0].Totals.Clients.Answers, s.Listeners[0].Losses.Clients.Answers} {
				require.Equal(t, l.known, answers.Known, "%s, %d", tt.name, i)
				require.Equal(t, l.unanswered, answers.Unanswered, "%s, %d", tt.name, i)
				require.Equal(t, !l.known, answers.Why != "", "%s, %d", tt.name, i)
			}
		}
	}
}

// Of two listeners on one port nobody knows whose the refused are: while one of them is restarted, its clients are not the other's.
func TestRefusedOfTheOtherListener(t *testing.T) {
	one, other := netip.MustParseAddrPort("10.0.0.5:8080"), netip.MustParseAddrPort("127.0.0.1:8080")
	now := time.Unix(1_700_000_000, 0)
	port := &Account{RefusedAt: one}
	c := &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: map[netip.AddrPort]*Account{one: {}, other: {}, Port(8080): port}}}}
	var state *State
	refused := func(closed netip.AddrPort, listening ...netip.AddrPort) uint64 { // of the last
		now = now.Add(time.Second)
		s := &model.Snapshot{Time: now, Interval: time.Minute}
		for _, at := range listening {
			s.Listeners = append(s.Listeners, model.Listener{ID: model.ListenerID{NetNS: 1, Address: at}, Port: 8080, Losses: &model.Losses{}})
		}
		if closed.IsValid() {
			s.Retired = []model.RetainedTotals{{ID: model.ListenerID{NetNS: 1, Address: closed}}}
		}
		state = Add(state, c, s)
		return s.Listeners[len(listening)-1].Losses.Clients.Outcomes[model.ClientRefused]
	}
	port.Totals.Outcomes[model.ClientRefused] = 34
	require.EqualValues(t, 34, refused(netip.AddrPort{}, one))
	require.EqualValues(t, 34, refused(one, other), "a server that was started again at another address")
	require.EqualValues(t, 34, refused(other, one))
	require.Zero(t, refused(netip.AddrPort{}, one, other))
	require.Zero(t, refused(one, other), "they came to the one that is closed")
	require.EqualValues(t, 34, refused(other, one), "they came to its own address")
	port.RefusedAt = netip.MustParseAddrPort("10.0.0.9:8080")
	require.EqualValues(t, 34, refused(one, other), "neither has listened there")
}

// What the clients' first bytes are says whether the server's are an answer: of TLS they are none. Of a Tomcat the settings say it.
func TestAnswersOfTLS(t *testing.T) {
	at := netip.MustParseAddrPort("0.0.0.0:443")
	type look struct {
		tls, ended uint64 // that began by TLS, and all that said something and have ended
		known      bool
	}
	nginx, tomcat := &model.Connector{Server: "nginx"}, &model.Connector{Protocol: "http-nio", MaxThreads: &model.Setting[int]{Value: 200}}
	for _, tt := range []struct {
		name   string
		server *model.Connector
		looks  []look
	}{
		{"its clients finish their handshakes, and wait for an upstream that hangs", nginx, []look{{0, 0, false}, {1, 0, false}, {20, 0, false}, {20, 20, false}, {21, 40, false}}},
		{"plain", nginx, []look{{0, 1, true}, {0, 40, true}}},
		{"plain, and scanners ask for TLS", nginx, []look{{0, 4, true}, {1, 4, true}, {1, 5, true}, {2, 60, true}}},
		{"plain, and the first is a scanner", nginx, []look{{1, 0, false}, {1, 1, false}, {1, 3, true}, {2, 12, true}}},
		{"few handshakes are seen to begin by and by", nginx, []look{{20, 20, false}, {30, 400, false}, {30, 700, true}}},
		{"clients ask a Tomcat for TLS that speaks none", tomcat, []look{{0, 0, true}, {20, 20, true}}},
	} {
		var state *State
		a := &Account{}
		c := &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: map[netip.AddrPort]*Account{at: a, Port(443): {}}}}}
		for i, l := range tt.looks {
			a.Totals.TLSBegun, a.Totals.Answers.Answered = l.tls, l.ended
			s := &model.Snapshot{
				Time: time.Unix(1_700_000_000+int64(i), 0), Interval: 10 * time.Second,
				Listeners: []model.Listener{{ID: model.ListenerID{NetNS: 1, Address: at}, Port: 443, Connector: tt.server, Losses: &model.Losses{}}},
			}
			state = Add(state, c, s)
			for _, answers := range []model.ClientAnswers{s.Listeners[0].Totals.Clients.Answers, s.Listeners[0].Losses.Clients.Answers} {
				require.Equal(t, l.known, answers.Known, "%s, %d", tt.name, i)
				require.Equal(t, !l.known, answers.Why != "", "%s, %d", tt.name, i)
			}
		}
	}
}

// Another server at the same address is judged by its own clients.
func TestGreetingsOfAnotherServer(t *testing.T) {
	var h history
	a := &Account{}
	meet := func(tls, all uint64) bool {
		a.Totals.TLSBegun += tls
		a.Totals.Answers.Answered += all
		h.greeted(a)
		return h.greeting.tls
	}
	require.False(t, meet(0, 5000))
	a.Since = time.Unix(1_700_000_000, 0)
	require.False(t, meet(0, 0))
	require.False(t, meet(1, 1), "one may be a scanner")
	require.True(t, meet(3, 3))
}

// Who was refused is named by the port, and among those that were turned away at the listener.
func TestLosersOfThePort(t *testing.T) {
	source := func(addr string, n uint64) model.ClientSource {
		return model.ClientSource{Addr: netip.MustParseAddr(addr), Clients: n}
	}
	at := netip.MustParseAddrPort("127.0.0.1:8080")
	a, port := &Account{}, &Account{}
	a.Latest.Losers = []model.ClientSource{source("10.0.0.1", 3), source("10.0.0.2", 2)}
	port.Latest.Losers = []model.ClientSource{source("10.0.0.2", 5)}
	c := &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: map[netip.AddrPort]*Account{at: a, Port(8080): port}}}}
	losers := func() []model.ClientSource {
		s := &model.Snapshot{Time: time.Unix(1_700_000_000, 0), Interval: 10 * time.Second, Listeners: []model.Listener{{ID: model.ListenerID{NetNS: 1, Address: at}, Port: 8080, Losses: &model.Losses{}}}}
		Add(nil, c, s)
		return s.Listeners[0].Losses.Clients.Losers
	}
	require.Equal(t, a.Latest.Losers, losers(), "nobody was refused")
	port.Totals.Outcomes[model.ClientRefused] = 5
	require.Equal(t, []model.ClientSource{source("10.0.0.2", 7), source("10.0.0.1", 3)}, losers())
	require.Equal(t, source("10.0.0.1", 3), a.Latest.Losers[0], "which are others' too")
	require.EqualValues(t, 2, a.Latest.Losers[1].Clients)
}
