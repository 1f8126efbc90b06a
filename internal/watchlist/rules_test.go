package watchlist

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

const (
	home, pod = 1, 2 // namespaces
	shop      = 42   // a process
	other     = 77
)

// listener is one on a port, of a process or of nobody who is known (0).
func listener(netns uint64, port uint16, pid int) *Candidate {
	c := &Candidate{Listening: facts.Listening{
		ID:      model.ListenerID{Address: netip.AddrPortFrom(netip.IPv4Unspecified(), port), NetNS: netns},
		Members: []sockdiag.Listener{{Inode: uint32(port)}},
	}}
	if pid != 0 {
		c.Owner = &owner.Process{PID: pid, Comm: "java"}
	}
	return c
}

func tomcat(c *Candidate) *Candidate {
	c.Discovered = &model.Connector{Server: "tomcat"}
	return c
}

// rules look into the agent's own namespace, and into the pod's for process shop.
func rules(s Selection, change func(*Scope)) *Rules {
	r := &Rules{Selection: s, Scope: Scope{
		Namespaces: []ScopedNamespace{{ID: home, General: true}, {ID: pod}}, Namespace: map[int]uint64{shop: pod},
	}}
	if change != nil {
		change(&r.Scope)
	}
	return r
}

func addresses(list []*Candidate) (out []uint16) {
	for _, c := range list {
		out = append(out, c.Port())
	}
	return out
}

func TestKeep(t *testing.T) {
	for name, tt := range map[string]struct {
		selection Selection
		scope     func(*Scope)
		all       []*Candidate
		want      []uint16
		note      string
	}{
		"nothing named: Tomcats": {
			all: []*Candidate{listener(home, 22, 5), tomcat(listener(home, 8443, 6)), tomcat(listener(home, 8080, 6))}, want: []uint16{8080, 8443},
		},
		"no Tomcat: everything, and that it is so": {
			all: []*Candidate{listener(home, 22, 5)}, want: []uint16{22}, note: "no Tomcat found: showing everything that listens",
		},
		"nothing at all": {note: "no Tomcat found, and nothing listens in this network namespace"},
		"no Tomcat on a node: nothing, as everything would be too much": {
			scope: func(s *Scope) { s.AllNamespaces = true }, all: []*Candidate{listener(home, 22, 5)},
			note: "no Tomcat found; network namespaces looked into: 2",
		},
		"what is watched does not answer: no other is shown for it": {
			scope: func(s *Scope) { s.Namespaces[0].Silent, s.Namespaces[0].Watches = true, true },
			all:   []*Candidate{listener(home, 22, 5)},
		},
		"all": {
			selection: Select(nil, nil, true, nil), all: []*Candidate{listener(home, 22, 5), tomcat(listener(home, 8080, 6))}, want: []uint16{22, 8080},
		},
		"a port": {
			selection: Select([]uint16{8080}, nil, false, nil), all: []*Candidate{listener(home, 22, 5), listener(home, 8080, 6), listener(pod, 8080, other)}, want: []uint16{8080},
		},
		"a process, in its namespace": {
			selection: Select(nil, []int{shop}, false, nil), all: []*Candidate{listener(home, 22, 5), listener(pod, 8080, shop), listener(pod, 9090, other)}, want: []uint16{8080},
		},
		"a process that listens nowhere": {
			selection: Select(nil, []int{shop}, false, nil), all: []*Candidate{listener(pod, 9090, other)}, note: "nothing listens on a TCP port in pid 42",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rules(tt.selection, tt.scope)
			r.Claim(tt.all, map[int]bool{shop: true})
			kept, note := r.Select(tt.all)
			require.Equal(t, tt.want, addresses(kept))
			require.Equal(t, tt.note, note)
		})
	}
}

// A port of a process: who holds it is said where it is another one, or unknown.
func TestClaimOfAPortOfAProcess(t *testing.T) {
	limits := Overrides{MaxThreads: ByHand(new(7), "tcpdiag.yml line 3")}
	selection := Select(nil, nil, false, []Target{{Ports: []uint16{8080}, PID: shop, Limits: limits, Labels: map[string]string{"app": "shop"}}})
	common := Overrides{MaxThreads: ByHand(new(1), "flag"), MaxConnections: ByHand(new(2), "flag")}
	for name, tt := range map[string]struct {
		holder   int
		searched bool
		note     string
		limits   Overrides
	}{
		"its own":         {shop, true, "", limits.Or(common)},
		"another's":       {other, true, "port 8080 is not pid 42's: pid 77 (java) holds 0.0.0.0:8080", common},
		"nobody's known":  {0, true, "port 8080 is not pid 42's: a process that cannot be seen holds 0.0.0.0:8080", common},
		"it may be its":   {0, false, "port 8080: whose listener 0.0.0.0:8080 is cannot be known; it may be pid 42's", limits.Or(common)},
		"another's again": {other, false, "port 8080 is not pid 42's: pid 77 (java) holds 0.0.0.0:8080", common},
	} {
		t.Run(name, func(t *testing.T) {
			r := rules(selection, nil)
			c := listener(pod, 8080, tt.holder)
			elsewhere := listener(home, 8080, shop)
			notes := r.Claim([]*Candidate{elsewhere, c}, map[int]bool{shop: tt.searched})
			if tt.note == "" {
				require.Empty(t, notes)
			} else {
				require.Equal(t, []string{tt.note}, notes)
			}
			require.True(t, c.Expected(), "clients are served there all the same")
			require.False(t, elsewhere.Expected(), "the process is in another namespace")
			require.Equal(t, tt.limits, c.Limits(common))
		})
	}
}

// The name of another process is its own choice.
func TestNamesOfHolders(t *testing.T) {
	require.Equal(t, `pid 7 (java\x1b[2J\u202e\\)`, holder(&owner.Process{PID: 7, Comm: "java\x1b[2J\u202e\\"}))
}

func TestLimitsGivenByHand(t *testing.T) {
	found := &model.Connector{Server: "tomcat", MaxThreads: &model.Setting[int]{Value: 200}, AcceptCount: &model.Setting[int]{Value: 100}}
	require.Same(t, found, Overrides{}.Apply(found))
	got := Overrides{MaxThreads: ByHand(new(50), "flag --max-threads")}.Apply(found)
	require.Equal(t, 50, got.MaxThreads.Value)
	require.Equal(t, model.SourceFlag, got.MaxThreads.Kind)
	require.Equal(t, 100, got.AcceptCount.Value)
	require.Equal(t, 200, found.MaxThreads.Value, "what was found stays as it was")
	require.Equal(t, 50, Overrides{MaxThreads: ByHand(new(50), "")}.Apply(nil).MaxThreads.Value)
	require.Nil(t, ByHand(nil, "flag"))

	found.MaxConnections = &model.Setting[int]{Value: math.MaxInt32, Source: "application.yml"}
	require.Equal(t, &model.Setting[int]{Value: -1, Source: "application.yml"}, Overrides{}.Apply(found).MaxConnections, "the largest there is, is no limit")
	require.Equal(t, math.MaxInt32, found.MaxConnections.Value)
}

func TestExpected(t *testing.T) {
	node := func(s *Scope) { s.AllNamespaces, s.Namespaces[1].General = true, true }
	for name, tt := range map[string]struct {
		scope func(*Scope)
		all   []*Candidate
		want  []model.Target
		notes []string
	}{
		"up":   {all: []*Candidate{listener(home, 8080, 5)}, want: []model.Target{{Port: 8080, NetNS: home, Up: true}}},
		"down": {all: []*Candidate{listener(home, 22, 5), listener(pod, 8080, 5)}, want: []model.Target{{Port: 8080, NetNS: home}}},
		"its namespace does not answer": {
			scope: func(s *Scope) { s.Namespaces[0].Silent = true },
		},
		"a node without a pod that serves": {
			scope: node, notes: []string{"nothing listens on port 8080 in any network namespace (looked into: 2)"},
		},
		"a node, looked at once": {
			scope: func(s *Scope) { node(s); s.OneShot = true }, want: []model.Target{{Port: 8080, NetNS: home}},
			notes: []string{"nothing listens on port 8080 in any network namespace (looked into: 2)"},
		},
		"a node that hides some": {
			scope: func(s *Scope) { node(s); s.Hidden = 3 },
			notes: []string{"nothing listens on port 8080 in the network namespaces that could be looked into (2); it may in the others (3)"},
		},
		"a pod that has served and does not": {
			scope: func(s *Scope) { node(s); s.Namespaces[1].Served = map[uint16]bool{8080: true} },
			want:  []model.Target{{Port: 8080, NetNS: pod}},
		},
		"another that was found, and has closed": {
			scope: func(s *Scope) { s.Remember, s.Namespaces[0].Served = true, map[uint16]bool{8081: true} },
			all:   []*Candidate{listener(home, 8080, 5)},
			want:  []model.Target{{Port: 8080, NetNS: home, Up: true}, {Port: 8081, NetNS: home}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes := rules(Select([]uint16{8080}, nil, false, nil), tt.scope).Expected(tt.all)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.notes, notes)
		})
	}
}

// A port that nobody asked for, and on which a server was watched, is known for a while.
func TestExpectedUnasked(t *testing.T) {
	seen := func(s *Scope) { s.Namespaces[0].Seen = map[uint16]namespace.Seen{8080: {}, 8081: {}} }
	got, _ := rules(Select(nil, nil, false, nil), seen).Expected([]*Candidate{listener(home, 8081, 5)})
	require.Equal(t, []model.Target{{Port: 8080, NetNS: home, Unasked: true}, {Port: 8081, NetNS: home, Up: true, Unasked: true}}, got)

	both := func(s *Scope) { seen(s); s.Remember, s.Namespaces[0].Served = true, map[uint16]bool{8080: true} }
	got, _ = rules(Select(nil, nil, false, nil), both).Expected(nil)
	require.Equal(t, []model.Target{{Port: 8080, NetNS: home}, {Port: 8081, NetNS: home, Unasked: true}}, got, "one of them is expected")

	got, _ = rules(Select([]uint16{8080}, nil, false, nil), seen).Expected(nil)
	require.Equal(t, []model.Target{{Port: 8080, NetNS: home}}, got, "nothing else is to be watched any more")
}

func TestForgetSeen(t *testing.T) {
	at := time.Date(2026, 3, 1, 3, 12, 0, 0, time.UTC)
	old := namespace.Seen{At: at.Add(-59 * time.Minute), User: 7}
	seen := map[uint16]namespace.Seen{1: {At: at.Add(-time.Hour)}, 2: old}
	forgetSeen(seen, at)
	require.Equal(t, map[uint16]namespace.Seen{2: old}, seen)

	for port := range uint16(100) {
		seen[1000+port] = namespace.Seen{At: at.Add(time.Duration(port) * time.Second)}
	}
	forgetSeen(seen, at)
	require.Len(t, seen, maxSeen)
	require.Contains(t, seen, uint16(1099), "the latest")
	require.Contains(t, seen, uint16(2), "of another user than of those that come and go")
}

// A target's labels stand over those of all, and those of a port over those of
// its process.
func TestInfos(t *testing.T) {
	targets := []Target{
		{PID: shop, Labels: map[string]string{"app": "shop"}},
		{Ports: []uint16{8080}, PID: shop, Labels: map[string]string{"app": "web"}},
		{Ports: []uint16{9999}, Labels: map[string]string{"app": "batch"}},
	}
	r := rules(Select(nil, nil, false, targets), nil)
	all := []*Candidate{listener(pod, 8080, shop), listener(pod, 8081, shop)}
	require.Empty(t, r.Claim(all, map[int]bool{shop: true}))
	require.Equal(t, []model.TargetInfo{
		{Port: 8080, NetNS: pod, Labels: map[string]string{"app": "web", "site": "a"}},
		{Port: 8081, NetNS: pod, Labels: map[string]string{"app": "shop", "site": "a"}},
		{Port: 9999, NetNS: home, Labels: map[string]string{"app": "batch", "site": "a"}},
	}, r.Infos(map[string]string{"site": "a"}, all))
}

// SO_REUSEPORT: one candidate, of which the fullest member counts; a longer
// queue can be emptier.
func TestGroup(t *testing.T) {
	id := model.ListenerID{Address: netip.MustParseAddrPort("0.0.0.0:8080")}
	alone := model.ListenerID{Address: netip.MustParseAddrPort("0.0.0.0:80")}
	list := Group([]model.ListenerID{id, alone, id}, []sockdiag.Listener{
		{Inode: 1, RecvQ: 50, SendQ: 100}, {Inode: 2}, {Inode: 3, RecvQ: 6, SendQ: 5},
	})
	require.Len(t, list, 2)
	require.Equal(t, []uint32{1, 3}, list[0].Inodes())
	require.EqualValues(t, 3, list[0].Worst().Inode)
	require.Equal(t, []uint32{2}, list[1].Inodes())
}

func TestSelection(t *testing.T) {
	require.True(t, Select([]uint16{80}, nil, true, nil).All == false, "--all adds nothing to a port")
	s := Select([]uint16{80, 81}, []int{shop, other}, false, nil)
	require.Len(t, s.Selectors, 4)
	require.Equal(t, []int{shop, other}, s.PIDs())
	require.False(t, s.General())
	require.True(t, s.Ports(81))
	require.False(t, s.Ports(82))
	id := model.ListenerID{Address: netip.MustParseAddrPort("0.0.0.0:80")}
	require.False(t, s.Expects(id), "it depends on the process")
	s = Select([]uint16{80}, nil, false, nil)
	require.True(t, s.Expects(id))
	require.True(t, s.General())
	r := rules(s, nil)
	require.True(t, r.MaySelect(listener(home, 80, 0)))
	require.False(t, r.MaySelect(listener(pod, 80, 0)))
	require.False(t, r.MayBe(shop, listener(home, 80, 0)))
}

// Of the namespaces that one owner makes by the thousand as many are followed as there is room for, and
// another's are among them, whoever came first.
func TestNamespacesAreBounded(t *testing.T) {
	discovered := func(id uint64, owner string) *namespace.Namespace {
		return &namespace.Namespace{ID: id, Discovered: true, Owner: owner}
	}
	own := &namespace.Namespace{ID: 1, OfAgent: true}
	open := []*namespace.Namespace{own, discovered(2, "calm")}
	come := make(map[netns.ID]resident)
	for i := range 1000 {
		come[netns.ID(100+i)] = resident{pid: 100 + i, owner: "greedy"}
	}
	come[5000] = resident{pid: 5000, owner: "calm"}
	stay, left, beyond := bounded(open, come, 10)
	require.Equal(t, open, stay)
	require.Empty(t, left)
	require.Equal(t, 992, beyond)
	require.Len(t, come, 9)
	require.Contains(t, come, netns.ID(5000))

	open = []*namespace.Namespace{own}
	for i := range 10 {
		open = append(open, discovered(uint64(100+i), "greedy"))
	}
	come = map[netns.ID]resident{5000: {owner: "calm"}, 6000: {owner: "greedy"}}
	stay, left, beyond = bounded(open, come, 10)
	require.Len(t, stay, 10)
	require.Equal(t, own, stay[0])
	require.Equal(t, uint64(109), left[0].ID, "the latest")
	require.Equal(t, 2, beyond)
	require.Equal(t, map[netns.ID]resident{5000: {owner: "calm"}}, come)
}

// Whoever joins an address (SO_REUSEPORT) does not become whose it is, wherever the kernel lists his socket
// and however full his queue is; of the owner's own cgroup the process in trouble is the one.
func TestWhoJoinsAnAddressDoesNotOwnIt(t *testing.T) {
	const honest, worker, hostile = 100, 101, 50 // pids; the hostile one's number is the lowest
	started := map[int]uint64{honest: 1000, worker: 1001, hostile: 2000}
	for name, tt := range map[string]struct {
		members []sockdiag.Listener // the inode is the pid
		want    int
	}{
		"last":                       {[]sockdiag.Listener{{Inode: honest, Cgroup: 7}, {Inode: hostile, Cgroup: 8}}, honest},
		"first":                      {[]sockdiag.Listener{{Inode: hostile, Cgroup: 8}, {Inode: honest, Cgroup: 7}}, honest},
		"its queue alone is full":    {[]sockdiag.Listener{{Inode: hostile, Cgroup: 8, RecvQ: 5}, {Inode: honest, Cgroup: 7}}, honest},
		"the owner's worker's is":    {[]sockdiag.Listener{{Inode: hostile, Cgroup: 8}, {Inode: honest, Cgroup: 7}, {Inode: worker, Cgroup: 7, RecvQ: 5}}, worker},
		"a kernel without cgroups":   {[]sockdiag.Listener{{Inode: honest}, {Inode: worker, RecvQ: 5}}, worker},
		"one whose process is known": {[]sockdiag.Listener{{Inode: 9, RecvQ: 5}, {Inode: honest}}, honest},
	} {
		t.Run(name, func(t *testing.T) {
			o := &owners{byInode: make(map[uint32]owner.Process)}
			for pid, start := range started {
				o.byInode[uint32(pid)] = owner.Process{PID: pid, StartTime: start}
			}
			c := &Candidate{Listening: facts.Listening{Members: tt.members}}
			o.assign(c)
			require.Equal(t, tt.want, c.Owner.PID)
		})
	}
	c := &Candidate{Listening: facts.Listening{Members: []sockdiag.Listener{{Inode: 9, RecvQ: 5}}}}
	(&owners{}).assign(c)
	require.Nil(t, c.Owner)
}

func TestShares(t *testing.T) {
	many := make([]Claimant, 100)
	for i := range many {
		many[i].NetNS = 1
	}
	spread := make([]Claimant, 100) // one in each namespace, all of one owner
	for i := range spread {
		spread[i] = Claimant{Owner: "a", NetNS: uint64(i)}
	}
	keptMany := slices.Clone(many)
	for i := range keptMany {
		keptMany[i].Watched = true
	}
	keptSpread := slices.Clone(spread)
	for i := range keptSpread {
		keptSpread[i].Watched = true
	}
	for name, tt := range map[string]struct {
		claimants []Claimant
		limit     int
		want      []int
	}{
		"none":                      {nil, 3, []int{}},
		"room for all":              {[]Claimant{{NetNS: 1}, {NetNS: 1}}, 3, []int{0, 1}},
		"one namespace is greedy":   {append(append([]Claimant{}, many...), Claimant{NetNS: 2}, Claimant{NetNS: 3}), 5, []int{0, 1, 2, 100, 101}},
		"explicit ones come first":  {append(append([]Claimant{}, many...), Claimant{NetNS: 1, Explicit: true}, Claimant{NetNS: 2}), 2, []int{0, 100}},
		"all explicit":              {[]Claimant{{NetNS: 1, Explicit: true}, {NetNS: 1, Explicit: true}, {NetNS: 2, Explicit: true}}, 2, []int{0, 1}},
		"what is watched stays":     {[]Claimant{{NetNS: 1}, {NetNS: 1, Watched: true}, {NetNS: 2}}, 2, []int{1, 2}},
		"new namespaces are heard":  {[]Claimant{{NetNS: 1, Watched: true}, {NetNS: 1, Watched: true}, {NetNS: 2}}, 2, []int{0, 2}},
		"watched namespaces before": {[]Claimant{{NetNS: 1}, {NetNS: 2, Watched: true}, {NetNS: 3, Watched: true}}, 2, []int{1, 2}},
		"one owner has many":        {append(slices.Clone(spread), Claimant{Owner: "b", NetNS: 200}, Claimant{Owner: "b", NetNS: 200}), 4, []int{0, 1, 100, 101}},
		"and was there first":       {append(slices.Clone(keptSpread), Claimant{Owner: "b", NetNS: 200}), 4, []int{0, 1, 2, 100}},
		"one user has many":         {append(slices.Clone(keptMany), Claimant{NetNS: 1, User: 7}, Claimant{NetNS: 1, User: 7}), 4, []int{0, 1, 100, 101}},
		"no room":                   {[]Claimant{{NetNS: 1}}, 0, []int{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, Shares(tt.claimants, tt.limit)) })
	}
}
