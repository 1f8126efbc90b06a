package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// node is a folder as a kubelet has it.
type node struct {
	t    *testing.T
	logs string
	now  time.Time
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, logs: t.TempDir(), now: time.Now().Add(time.Hour)}
	for _, name := range []string{"pods", "containers"} {
		require.NoError(t, os.Mkdir(filepath.Join(n.logs, name), 0o700))
	}
	return n
}

func (n *node) names() *Names { return New(n.logs, func() time.Time { return n.now }) }

// folder makes a pod's with those of its containers.
func (n *node) folder(name string, containers ...string) {
	n.t.Helper()
	for _, c := range append(containers, "") {
		require.NoError(n.t, os.MkdirAll(filepath.Join(n.logs, "pods", name, c), 0o700))
	}
}

func (n *node) link(name string) {
	n.t.Helper()
	require.NoError(n.t, os.Symlink("/nowhere", filepath.Join(n.logs, "containers", name)))
}

// start is what a kubelet makes for a container.
func (n *node) start(namespace, pod, container, uid, id string) {
	n.t.Helper()
	n.folder(namespace+"_"+pod+"_"+uid, container)
	n.link(linkName(folder{namespace, pod, uid}, container, id))
}

const uid = "6e4a3a4c-2cd4-4f3e-9f7a-0123456789ab"

func id(i int) string { return fmt.Sprintf("%064x", i) }

func uidOf(i int) string { return fmt.Sprintf("%08x-2cd4-4f3e-9f7a-0123456789ab", i) }

func TestNames(t *testing.T) {
	long := strings.Repeat("p", 200)
	orders := &model.Pod{Namespace: "shop", Name: "orders-7d9c", Container: "app", UID: uid}
	without := func(p *model.Pod) *model.Pod { q := *p; q.Container = ""; return &q }
	tests := []struct {
		name string
		node func(n *node)
		ask  cgroup.Pod
		want *model.Pod
	}{
		{"as a kubelet has it", func(n *node) { n.start("shop", "orders-7d9c", "app", uid, id(1)) }, cgroup.Pod{UID: uid, ContainerID: id(1)}, orders},
		{"its id alone", func(n *node) { n.start("shop", "orders-7d9c", "app", uid, id(1)) }, cgroup.Pod{ContainerID: id(1)}, &model.Pod{Namespace: "shop", Name: "orders-7d9c", Container: "app"}},
		{"nothing is there", func(*node) {}, cgroup.Pod{UID: uid, ContainerID: id(1)}, nil},
		{"no cgroup that says it", func(n *node) { n.start("shop", "orders-7d9c", "app", uid, id(1)) }, cgroup.Pod{}, nil},
		{"its link is not there yet, its only container", func(n *node) { n.folder("shop_orders-7d9c_"+uid, "app") }, cgroup.Pod{UID: uid, ContainerID: id(1)}, orders},
		{"its link is not there yet, one of two", func(n *node) { n.folder("shop_orders-7d9c_"+uid, "app", "proxy") }, cgroup.Pod{UID: uid, ContainerID: id(1)}, without(orders)},
		{"the second start of a container", func(n *node) {
			n.start("shop", "orders-7d9c", "app", uid, id(1))
			n.link("orders-7d9c_shop_app-" + id(2) + ".log")
		}, cgroup.Pod{UID: uid, ContainerID: id(2)}, orders},
		{"a cut link, one container", func(n *node) { n.start("shop", long, "app", uid, id(1)) }, cgroup.Pod{UID: uid, ContainerID: id(1)}, &model.Pod{Namespace: "shop", Name: long, Container: "app", UID: uid}},
		{"cut links, two containers", func(n *node) {
			n.start("shop", long, "app", uid, id(1))
			n.start("shop", long, "proxy", uid, "ab"+id(2)[2:])
		}, cgroup.Pod{UID: uid, ContainerID: "ab" + id(2)[2:]}, &model.Pod{Namespace: "shop", Name: long, Container: "proxy", UID: uid}},
		{"two containers whose links are cut to the same", func(n *node) {
			n.folder("shop_"+long+"_"+uid, "app", "app-0")
			n.link(linkName(folder{"shop", long, uid}, "app", id(1)))
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, &model.Pod{Namespace: "shop", Name: long, Container: "app", UID: uid}},
		{"two links with one id", func(n *node) {
			n.start("shop", "orders-7d9c", "app", uid, id(1))
			n.link("orders-7d9c_shop_proxy-" + id(1) + ".log")
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, without(orders)},
		{"two links of different pods with one id", func(n *node) {
			n.start("shop", "orders-7d9c", "app", uid, id(1))
			n.link("victim_shop_app-" + id(1) + ".log")
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, nil},
		{"the same, without a uid", func(n *node) {
			n.start("shop", "orders-7d9c", "app", uid, id(1))
			n.link("victim_shop_app-" + id(1) + ".log")
		}, cgroup.Pod{ContainerID: id(1)}, nil},
		{"a foreign link, and the pod's folder says otherwise", func(n *node) {
			n.folder("shop_orders-7d9c_"+uid, "app")
			n.link("victim_bank_app-" + id(1) + ".log")
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, nil},
		{"a foreign link, and no folder has the uid", func(n *node) { n.link("victim_bank_app-" + id(1) + ".log") }, cgroup.Pod{UID: uid, ContainerID: id(1)}, nil},
		{"two folders with one uid", func(n *node) {
			n.start("shop", "orders-7d9c", "app", uid, id(1))
			n.folder("bank_victim_" + uid)
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, nil},
		{"a link in place of the folder", func(n *node) {
			require.NoError(n.t, os.Symlink("/", filepath.Join(n.logs, "pods", "shop_orders-7d9c_"+uid)))
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, nil},
		{"a file in place of the link", func(n *node) {
			n.folder("shop_orders-7d9c_"+uid, "app", "proxy")
			require.NoError(n.t, os.WriteFile(filepath.Join(n.logs, "containers", "orders-7d9c_shop_app-"+id(1)+".log"), nil, 0o600))
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, without(orders)},
		{"a container that is called as another's id", func(n *node) {
			n.start("shop", "orders-7d9c", "app", uid, id(1))
			n.start("shop", "evil", "app-"+id(1)[:58], uidOf(2), id(2))
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, orders},
		{"the pods' folder cannot be read: the link alone", func(n *node) {
			n.start("shop", "orders-7d9c", "app", uid, id(1))
			require.NoError(n.t, os.RemoveAll(filepath.Join(n.logs, "pods")))
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, orders},
		{"the containers' folder cannot be read", func(n *node) {
			n.folder("shop_orders-7d9c_"+uid, "app")
			require.NoError(n.t, os.RemoveAll(filepath.Join(n.logs, "containers")))
		}, cgroup.Pod{UID: uid, ContainerID: id(1)}, orders},
		{"a uid of no folder", func(n *node) { n.folder("shop_orders-7d9c_"+uid, "app") }, cgroup.Pod{UID: uidOf(3)}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			tt.node(n)
			names := n.names()
			names.Refresh([]cgroup.Pod{tt.ask}, false)
			require.Equal(t, tt.want, names.Of(tt.ask))
		})
	}
}

func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"", ".log", "a_b_c.log", "a_b_c-" + id(1), "a_b_-" + id(1) + ".log", "a_b_c" + id(1) + ".log",
		"A_b_c-" + id(1) + ".log", "a_B_c-" + id(1) + ".log", "a_b_C-" + id(1) + ".log", "a_b_c_d-" + id(1) + ".log",
		"-a_b_c-" + id(1) + ".log", "a_b._c-" + id(1) + ".log", "a_b.c_d-" + id(1) + ".log", "a\x1b[31m_b_c-" + id(1) + ".log",
		"a\u202e_b_c-" + id(1) + ".log", "a_b_c-" + strings.ToUpper(strings.Repeat("ab", 32)) + ".log", "a_b_c-" + id(1)[1:] + ".log",
		"a_" + strings.Repeat("b", 64) + "_c-" + id(1) + ".log", "a..b_c_d-" + id(1) + ".log", "<b>_b_c-" + id(1) + ".log", "a_b_{{x}}-" + id(1) + ".log",
	} {
		_, ok := parseLink(name)
		require.False(t, ok, "%q", name)
	}
	for _, name := range []string{"", "_", "__", "a_b", "a_b_", "a_b_c_d", "a.b_c_u", "A_b_u", "a_-b_u", "a\n_b_u", "_b_u"} {
		_, ok := parseFolder(name)
		require.False(t, ok, "%q", name)
	}
	l, ok := parseLink("a.b-c_d_e-" + id(1) + ".log")
	require.True(t, ok)
	require.Equal(t, link{"d", "a.b-c", "e", id(1)}, l)
}

func FuzzParse(f *testing.F) {
	f.Add("orders_shop_app-" + id(1) + ".log")
	f.Add("shop_orders_" + uid)
	f.Fuzz(func(t *testing.T, name string) {
		if l, ok := parseLink(name); ok {
			require.Equal(t, name, l.pod+"_"+l.namespace+"_"+l.container+"-"+l.id+suffix)
			require.True(t, isSubdomain(l.pod) && isLabel(l.namespace) && isLabel(l.container))
		}
		if p, ok := parseFolder(name); ok {
			require.Equal(t, name, p.namespace+"_"+p.pod+"_"+p.uid)
		}
	})
}

// Pods that come and go, ten a second: each that is there has its own name, and what is
// remembered is of those that are asked for.
func TestChurn(t *testing.T) {
	n := newNode(t)
	names := n.names()
	var there []int
	for i := range 200 {
		n.start(fmt.Sprintf("team-%d", i%12), fmt.Sprintf("app-%d", i), "app", uidOf(i), id(i))
		there = append(there, i)
		if len(there) > 50 {
			old := there[0]
			there = there[1:]
			require.NoError(t, os.RemoveAll(filepath.Join(n.logs, "pods", fmt.Sprintf("team-%d_app-%d_%s", old%12, old, uidOf(old)))))
			require.NoError(t, os.Remove(filepath.Join(n.logs, "containers", fmt.Sprintf("app-%d_team-%d_app-%s.log", old, old%12, id(old)))))
		}
		if i%10 != 9 {
			continue
		}
		n.now = n.now.Add(time.Second)
		ask := make([]cgroup.Pod, 0, len(there))
		for _, j := range there {
			ask = append(ask, cgroup.Pod{UID: uidOf(j), ContainerID: id(j)})
		}
		names.Refresh(ask, false)
		for k, j := range there {
			require.Equal(t, &model.Pod{Namespace: fmt.Sprintf("team-%d", j%12), Name: fmt.Sprintf("app-%d", j), Container: "app", UID: uidOf(j)}, names.Of(ask[k]))
		}
		require.Len(t, names.known, len(there))
	}
}

// The folders are read as often as their cost allows, and not at all while nothing has changed.
func TestReadsWhenChanged(t *testing.T) {
	n := newNode(t)
	old := n.now.Add(-time.Minute)
	for _, path := range n.names().folders() {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	names := n.names()
	one := cgroup.Pod{UID: uid, ContainerID: id(1)}
	names.Refresh([]cgroup.Pod{one}, false)
	first := names.at
	require.Equal(t, n.now, first)
	require.True(t, names.Waiting())

	n.now = n.now.Add(5 * time.Second)
	names.Refresh([]cgroup.Pod{one}, false)
	require.Equal(t, first, names.at, "nothing has changed")

	n.start("shop", "orders", "app", uid, id(1))
	names.Refresh([]cgroup.Pod{one}, false)
	require.Equal(t, "orders", names.Of(one).Name)
	require.False(t, names.Waiting())

	two := cgroup.Pod{UID: uidOf(2), ContainerID: id(2)}
	n.now = n.now.Add(scanEvery / 2)
	n.start("shop", "basket", "app", two.UID, two.ContainerID)
	names.Refresh([]cgroup.Pod{one, two}, false)
	require.Nil(t, names.Of(two), "too soon")
	require.Equal(t, "orders", names.Of(one).Name)
	names.Refresh([]cgroup.Pod{one, two}, true)
	require.Equal(t, "basket", names.Of(two).Name)

	three := cgroup.Pod{UID: uidOf(3), ContainerID: id(3)}
	n.start("shop", "stock", "app", three.UID, three.ContainerID)
	names.cost = time.Second // as of a hundred thousand entries
	n.now = n.now.Add(time.Duration(float64(names.cost)/scanPart) - scanEvery)
	names.Refresh([]cgroup.Pod{one, two, three}, false)
	require.Nil(t, names.Of(three), "too much of a core")
	n.now = n.now.Add(scanEvery)
	names.Refresh([]cgroup.Pod{one, two, three}, false)
	require.Equal(t, "stock", names.Of(three).Name)
}

func TestUnavailable(t *testing.T) {
	n := newNode(t)
	require.NoError(t, os.RemoveAll(filepath.Join(n.logs, "pods")))
	require.NoError(t, os.RemoveAll(filepath.Join(n.logs, "containers")))
	names := n.names()
	names.Refresh([]cgroup.Pod{{ContainerID: id(1)}}, false)
	require.Empty(t, names.Unavailable(), "Docker's, say: nobody expects a pod")
	n.now = n.now.Add(time.Second)
	names.Refresh([]cgroup.Pod{{UID: uid, ContainerID: id(1)}, {UID: uidOf(2), ContainerID: id(2)}}, false)
	require.Len(t, names.Unavailable(), 1, "once")
	require.Contains(t, names.Unavailable()[0].Why, "no such file")
}

func TestOwn(t *testing.T) {
	env := map[string]string{"POD_NAME": "orders-1", "POD_NAMESPACE": "shop", "POD_UID": uid, "CONTAINER": "app"}
	own := func(change map[string]string, byCgroup string) Self {
		o := NewSelf(func(name string) string {
			if v, ok := change[name]; ok {
				return v
			}
			return env[name]
		}, byCgroup)
		o.shared = false
		return o
	}
	want := &model.Pod{Namespace: "shop", Name: "orders-1", Container: "app", UID: uid}
	require.Equal(t, want, own(nil, "").Of(cgroup.Pod{}))
	require.Equal(t, want, own(nil, uid).Of(cgroup.Pod{UID: uid, ContainerID: id(1)}))
	require.Nil(t, own(nil, "").Of(cgroup.Pod{UID: uidOf(2)}), "another pod's process")
	require.Nil(t, own(nil, uidOf(2)).Of(cgroup.Pod{}), "the environment is of another pod")
	require.Nil(t, own(map[string]string{"POD_NAME": "Orders\x1b"}, "").Of(cgroup.Pod{}))
	require.Nil(t, own(map[string]string{"POD_NAMESPACE": ""}, "").Of(cgroup.Pod{}))
	require.Equal(t, &model.Pod{Namespace: "shop", Name: "orders-1", UID: uid}, own(map[string]string{"CONTAINER": "<b>"}, "").Of(cgroup.Pod{}))
	host := own(nil, uid)
	host.shared = true
	require.Nil(t, host.Of(cgroup.Pod{}), "the node's network")
	require.Equal(t, want, host.Of(cgroup.Pod{UID: uid}))
	require.Nil(t, Self{}.Of(cgroup.Pod{}))
}

// Fifty pods of twelve workloads, ten of which are replaced each second for five minutes: those of a
// StatefulSet keep their name and have a new uid, the others the reverse, and a kubelet removes what
// has ended some seconds later. Two seconds after its start each pod has its own name and no other's,
// and what is remembered does not grow.
func TestReplacedForFiveMinutes(t *testing.T) {
	type running struct {
		pod     model.Pod
		id      string
		started time.Time
	}
	n := newNode(t)
	names := n.names()
	made := 0
	begin := func(slot int) running {
		made++
		workload := slot % 12
		name := fmt.Sprintf("app-%d-%06x", workload, made)
		if workload%2 == 0 {
			name = fmt.Sprintf("db-%d-%d", workload, slot/12)
		}
		r := running{model.Pod{Namespace: fmt.Sprintf("team-%d", workload%5), Name: name, Container: "app", UID: uidOf(made)}, id(made), n.now}
		n.start(r.pod.Namespace, r.pod.Name, "app", r.pod.UID, r.id)
		return r
	}
	var there, ended []running
	for slot := range 50 {
		there = append(there, begin(slot))
	}
	named := 0
	for second := range 300 {
		n.now = n.now.Add(time.Second)
		for i := range 10 {
			slot := (second*10 + i) % len(there)
			ended = append(ended, there[slot])
			there[slot] = begin(slot)
		}
		for len(ended) > 30 {
			old := ended[0]
			ended = ended[1:]
			require.NoError(t, os.RemoveAll(filepath.Join(n.logs, "pods", old.pod.Namespace+"_"+old.pod.Name+"_"+old.pod.UID)))
			require.NoError(t, os.Remove(filepath.Join(n.logs, "containers", linkName(folder{old.pod.Namespace, old.pod.Name, old.pod.UID}, "app", old.id))))
		}
		var ask []cgroup.Pod
		for _, r := range there {
			ask = append(ask, cgroup.Pod{UID: r.pod.UID, ContainerID: r.id})
		}
		names.Refresh(ask, false)
		for i, r := range there {
			got := names.Of(ask[i])
			if got == nil {
				require.Less(t, n.now.Sub(r.started), 2*time.Second, r.pod.Name)
				continue
			}
			require.Equal(t, &r.pod, got)
			named++
		}
		require.Len(t, names.known, 50)
	}
	require.Greater(t, named, 300*40)
}

// Names as long as a kubelet can start them: the folder's name has 255 bytes, more no file system takes.
func TestLongestNames(t *testing.T) {
	namespace, container := strings.Repeat("n", 63), strings.Repeat("c", 63)
	pod := strings.Repeat("p", 255-len(namespace)-len(uid)-2)
	n := newNode(t)
	n.start(namespace, pod, container, uid, id(1))
	// Another, whose link's name is cut at the same place, and begins with the same.
	other := pod[:len(pod)-1] + "q"
	n.start(namespace, other, container, uidOf(2), id(2))
	require.Error(t, os.Mkdir(filepath.Join(n.logs, "pods", namespace+"_"+pod+"p_"+uid), 0o700), "longer none can be")
	names := n.names()
	ask := []cgroup.Pod{{UID: uid, ContainerID: id(1)}, {UID: uidOf(2), ContainerID: id(2)}}
	names.Refresh(ask, false)
	require.Equal(t, &model.Pod{Namespace: namespace, Name: pod, Container: container, UID: uid}, names.Of(ask[0]))
	require.Equal(t, &model.Pod{Namespace: namespace, Name: other, Container: container, UID: uidOf(2)}, names.Of(ask[1]))
}

// What a pod can bring into the folders by its own names: no name of another is said for it, nor its
// name for another.
func TestNamesThatLookLikeOthers(t *testing.T) {
	n := newNode(t)
	n.start("shop", "orders", "app", uid, id(1))
	for i, forged := range []struct{ namespace, pod, container string }{
		{"shop", "orders", "app"}, // the same names, of a pod that was replaced
		{"shop-orders", "app", "app"},
		{"app", "shop", "orders"},
		{"shop", "orders.app", "app"},
		{"shop", "orders", "app-" + id(1)[:58]}, // an id in the container's name
		{"shop", strings.Repeat("0", 64), "app"},
		{"shop", uid, "app"},
	} {
		n.start(forged.namespace, forged.pod, forged.container, uidOf(10+i), id(10+i))
	}
	names := n.names()
	ask := []cgroup.Pod{{UID: uid, ContainerID: id(1)}, {UID: uidOf(11), ContainerID: id(11)}, {UID: uidOf(14), ContainerID: id(14)}, {UID: uidOf(99), ContainerID: id(99)}}
	names.Refresh(ask, false)
	require.Equal(t, &model.Pod{Namespace: "shop", Name: "orders", Container: "app", UID: uid}, names.Of(ask[0]))
	require.Equal(t, &model.Pod{Namespace: "shop-orders", Name: "app", Container: "app", UID: uidOf(11)}, names.Of(ask[1]))
	require.Equal(t, "app-"+id(1)[:58], names.Of(ask[2]).Container)
	require.Nil(t, names.Of(ask[3]))
	// Symbolic links in place of folders are not followed, whoever made them.
	require.NoError(t, os.RemoveAll(filepath.Join(n.logs, "pods", "shop_orders_"+uid)))
	require.NoError(t, os.Symlink(filepath.Join(n.logs, "pods", "shop-orders_app_"+uidOf(11)), filepath.Join(n.logs, "pods", "shop_orders_"+uid)))
	n.now = n.now.Add(time.Second)
	names.Refresh(ask[:1], true)
	require.Nil(t, names.Of(ask[0]))
}
