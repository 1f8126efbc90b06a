package cgroup

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// A cgroup of version 2 as Linux 6.x writes it.
const (
	cpuStat = "usage_usec 8514387\nuser_usec 6212930\nsystem_usec 2301456\nnice_usec 0\ncore_sched.force_idle_usec 0\n" +
		"nr_periods 331\nnr_throttled 112\nthrottled_usec 9203911\nnr_bursts 0\nburst_usec 0\n"
	cpuStatNone = "usage_usec 8514387\nuser_usec 6212930\nsystem_usec 2301456\n"
	podSlice    = "/kubepods.slice/kubepods-pod" + uidU + ".slice"
)

func fakeCgroups(t *testing.T, files map[string]string) hostproc.FS {
	t.Helper()
	dir := proctest.Fake(t, files)
	fs := hostfs.At(t, dir)
	for i := range fs.Cgroups() {
		fs.Cgroups()[i].Point = dir + fs.Cgroups()[i].Point
	}
	return fs
}

func TestCgroupV2(t *testing.T) {
	scope := podSlice + "/cri-containerd-" + hexID + ".scope"
	fs := fakeCgroups(t, map[string]string{
		"1/mountinfo":                                           "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
		"7/cgroup":                                              "0::" + scope + "\n",
		"sys/fs/cgroup" + scope + "/cpu.stat":                   cpuStat,
		"sys/fs/cgroup" + scope + "/cpu.max":                    "150000 100000\n",
		"sys/fs/cgroup" + scope + "/memory.max":                 "max\n",
		"sys/fs/cgroup" + scope + "/pids.max":                   "4096\n",
		"sys/fs/cgroup" + scope + "/pids.events":                "max 3\n",
		"sys/fs/cgroup" + scope + "/pids.events.local":          "max 3\n",
		"sys/fs/cgroup" + podSlice + "/pids.events":             "max 90\n",
		"sys/fs/cgroup" + podSlice + "/pids.events.local":       "max 2\n",
		"sys/fs/cgroup" + podSlice + "/cpu.stat":                "nr_periods 331\nnr_throttled 3\nthrottled_usec 89\n",
		"sys/fs/cgroup" + podSlice + "/cpu.max":                 "max 100000\n",
		"sys/fs/cgroup" + podSlice + "/memory.max":              "536870912\n",
		"sys/fs/cgroup" + podSlice + "/pids.max":                "max\n",
		"sys/fs/cgroup/kubepods.slice/memory.max":               "8589934592\n",
		"sys/fs/cgroup/cpu.stat":                                cpuStatNone,
		"sys/fs/cgroup/system.slice/unrelated.service/cpu.stat": cpuStat,
	})
	c, err := Of(fs, 7)
	require.NoError(t, err)
	require.Equal(t, Group{
		Path: scope, ContainerID: hexID, PodUID: uid, Owner: "pod " + uid,
		Throttled: new(9204 * time.Millisecond), NrThrottled: new(uint64(115)),
		NrPeriods: new(uint64(331)), Used: new(8514387 * time.Microsecond),
		CPULimit: new(1.5), MemoryLimit: new(uint64(536870912)), PidsLimit: new(uint64(4096)),
		PidsRefused: new(uint64(5)), // without those of the pod's other containers
	}, c)
}

func TestCgroupV1(t *testing.T) {
	const mounts = "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n" +
		"31 30 0:27 /docker/" + hexID + " /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 30 0:28 /docker/" + hexID + " /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
		"33 30 0:29 /docker/" + hexID + " /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
	files := map[string]string{
		"1/mountinfo": mounts,
		"7/cgroup": "4:pids:/docker/" + hexID + "\n3:memory:/docker/" + hexID + "\n" +
			"2:cpu,cpuacct:/docker/" + hexID + "\n1:name=systemd:/docker/" + hexID + "\n0::/\n",
		"8/cgroup":                                         "4:pids:/\n3:memory:/\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.stat":               "nr_periods 10\nnr_throttled 4\nthrottled_time 123456789\n",
		"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage":          "987654321\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":       "50000\n",
		"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":      "100000\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
		"sys/fs/cgroup/pids/pids.max":                      "max\n",
		"sys/fs/cgroup/pids/pids.events":                   "max 7\n",
		"sys/fs/cgroup/unrelated/memory.limit_in_bytes":    "5\n",
		"sys/fs/cgroup/memory/below/memory.limit_in_bytes": "6\n",
	}
	fs := fakeCgroups(t, files)
	c, err := Of(fs, 7)
	require.NoError(t, err)
	require.Equal(t, Group{
		Path: "/docker/" + hexID, ContainerID: hexID, Owner: "container " + hexID,
		Throttled: new(123456789 * time.Nanosecond), NrThrottled: new(uint64(4)), CPULimit: new(0.5),
		NrPeriods: new(uint64(10)), Used: new(987654321 * time.Nanosecond), PidsRefused: new(uint64(7)),
	}, c)

	// A process of the host: what is mounted here is another group.
	c, err = Of(fs, 8)
	require.NoError(t, err)
	require.Equal(t, Group{Path: "/"}, c)
}

func TestFrozen(t *testing.T) {
	const v1 = "30 23 0:26 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
	const v2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for name, c := range map[string]struct {
		mounts, group, file, text string
		want                      bool
	}{
		"version 2":            {v2, "0::/app\n", "app/cgroup.events", "populated 1\nfrozen 1\n", true},
		"version 2, it runs":   {v2, "0::/app\n", "app/cgroup.events", "populated 1\nfrozen 0\n", false},
		"version 2, not said":  {v2, "0::/app\n", "app/cgroup.events", "populated 1\n", false},
		"version 1":            {v1, "4:freezer:/app\n0::/\n", "freezer/app/freezer.state", "FROZEN\n", true},
		"version 1, beginning": {v1, "4:freezer:/app\n0::/\n", "freezer/app/freezer.state", "FREEZING\n", true},
		"version 1, it runs":   {v1, "4:freezer:/app\n0::/\n", "freezer/app/freezer.state", "THAWED\n", false},
		"not visible":          {v1, "4:freezer:/app\n0::/\n", "freezer/other/freezer.state", "FROZEN\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			fs := fakeCgroups(t, map[string]string{"1/mountinfo": c.mounts, "7/cgroup": c.group, "sys/fs/cgroup/" + c.file: c.text})
			got, err := Of(fs, 7)
			require.NoError(t, err)
			require.Equal(t, c.want, got.Frozen)

			kept, err := OpenFreezer(fs, 7)
			if name == "not visible" {
				require.ErrorIs(t, err, hostproc.ErrNotSupported)
				return
			}
			require.NoError(t, err)
			defer kept.Close()
			frozen, err := kept.Frozen()
			require.NoError(t, err)
			require.Equal(t, c.want, frozen)
		})
	}
}

func TestCgroupNamedByItsMounts(t *testing.T) {
	fs := fakeCgroups(t, map[string]string{
		"7/cgroup": "0::/\n",
		"7/mountinfo": "50 40 8:1 /var/lib/kubelet/pods/" + uid + "/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n" +
			"51 40 8:1 /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/" + hexID + "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n" +
			"52 40 8:1 /var/lib/docker/containers/" + hexID[1:] + "1/hosts /data rw - ext4 /dev/sda1 rw\n",
	})
	c, err := Of(fs, 7)
	require.NoError(t, err)
	require.Equal(t, uid, c.PodUID)
}

func TestCgroupMalformed(t *testing.T) {
	fs := fakeCgroups(t, map[string]string{"7/cgroup": "nonsense\n", "8/cgroup": ""})
	_, err := Of(fs, 7)
	require.Error(t, err)
	c, err := Of(fs, 8)
	require.NoError(t, err)
	require.Equal(t, Group{}, c)
	_, err = Of(fs, 9)
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}

func TestParseLimits(t *testing.T) {
	for in, want := range map[string]*uint64{
		"1073741824\n":          new(uint64(1073741824)),
		"0\n":                   new(uint64(0)),
		"max\n":                 nil,
		"-1\n":                  nil,
		"":                      nil,
		"9223372036854771712\n": nil, // LONG_MAX in pages of 4 kB
		"9223372036854710272\n": nil, // of 64 kB
	} {
		got, ok := parseLimit([]byte(in))
		require.Equal(t, want != nil, ok, in)
		if ok {
			require.Equal(t, *want, got, in)
		}
	}
	for in, want := range map[string]float64{"150000 100000\n": 1.5, "max 100000\n": 0, "100000": 0, "1 0": 0, "": 0, "x y": 0} {
		got, ok := parseCPUMax([]byte(in))
		require.Equal(t, want != 0, ok, in)
		require.Equal(t, want, got, in)
	}
}

func FuzzCgroupFiles(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte(cpuStat))
	m.Add([]byte("max 100000\n"))
	m.Add([]byte("nr_throttled 4\nthrottled_time 18446744073709551615\nthrottled_usec 18446744073709551615\n"))
	m.Fuzz(func(t *testing.T, data []byte) {
		var c Group
		c.addThrottled(data)
		if used, ok := parseUsage(data); ok {
			require.GreaterOrEqual(t, used, time.Duration(0))
		}
		if limit, ok := parseCPUMax(data); ok {
			require.False(t, math.IsNaN(limit) || math.IsInf(limit, 0) || limit < 0)
		}
		_, _ = parseLimit(data)
	})
}

// The kernel's own cgroups: a CPU hog in a group with a tenth of a CPU.
func TestCgroupOfTheKernel(t *testing.T) {
	proctest.NeedRoot(t)
	fs := hostfs.Real(t)
	c := proctest.Start(t, "wait", "")
	group := makeCPUGroup(t, fs, c.PID())
	hog := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	require.NoError(t, hog.Start())
	defer func() {
		_ = hog.Process.Kill()
		_ = hog.Wait()
	}()
	join(t, group, hog.Process.Pid)
	defer join(t, filepath.Dir(group), hog.Process.Pid)

	require.Eventually(t, func() bool {
		got, err := Of(fs, c.PID())
		return err == nil && got.Throttled != nil && *got.Throttled > 100*time.Millisecond && *got.NrThrottled > 0
	}, time.Minute, 20*time.Millisecond)
	got, err := Of(fs, c.PID())
	require.NoError(t, err)
	require.Equal(t, new(0.1), got.CPULimit)
	requireMostlyThrottled(t, fs, hog.Process.Pid)

	before, err := Of(fs, c.PID())
	require.NoError(t, err)
	stat, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	require.NoError(t, err)
	after, err := Of(fs, c.PID())
	require.NoError(t, err)
	var direct Group
	direct.addThrottled(stat)
	require.LessOrEqual(t, *before.Throttled, *direct.Throttled)
	require.LessOrEqual(t, *direct.Throttled, *after.Throttled)
}

// requireMostlyThrottled: a hog with a tenth of a CPU is kept from it in nearly
// every period, and gets a tenth of what it wants: by and large, for the kernel
// counts in slices of milliseconds, and others want the CPU, too.
func requireMostlyThrottled(t *testing.T, fs hostproc.FS, pid int) {
	t.Helper()
	before, was, beforeEnds := cpuOf(t, fs, pid)
	require.Eventually(t, func() bool {
		now, err := Of(fs, pid)
		return err == nil && *now.NrPeriods-*before.NrPeriods >= 20
	}, time.Minute, 20*time.Millisecond)
	now, is, nowEnds := cpuOf(t, fs, pid)

	periods := float64(*now.NrThrottled-*before.NrThrottled) / float64(*now.NrPeriods-*before.NrPeriods)
	require.InDelta(t, 1, periods, .5)
	kept, used := *now.Throttled-*before.Throttled, is.CPUTime-was.CPUTime
	require.Positive(t, used)
	require.InDelta(t, .9, float64(kept)/float64(kept+used), .3, "kept back %s, used %s", kept, used)
	if now.Used != nil {
		const ticks = 20 * time.Millisecond // of /proc/PID/stat, HZ=100
		require.GreaterOrEqual(t, used, *now.Used-*beforeEnds.Used-ticks)
		require.LessOrEqual(t, used, *nowEnds.Used-*before.Used+ticks)
	}
}

// cpuOf is a reading of the process between two of its group.
func cpuOf(t *testing.T, fs hostproc.FS, pid int) (before Group, p hostproc.Process, after Group) {
	t.Helper()
	before, err := Of(fs, pid)
	require.NoError(t, err)
	p, err = fs.Process(pid)
	require.NoError(t, err)
	after, err = Of(fs, pid)
	require.NoError(t, err)
	return before, p, after
}

// makeCPUGroup makes a group limited to a tenth of a CPU and moves a process
// into it.
func makeCPUGroup(t *testing.T, fs hostproc.FS, pid int) string {
	t.Helper()
	for _, m := range fs.Cgroups() {
		if _, v1 := m.Controllers["cpu"]; m.Root != "/" || !v1 && !m.V2 {
			continue
		}
		group := filepath.Join(m.Point, "tcpdiag-test-"+strconv.Itoa(pid))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			join(t, m.Point, pid)
			// Processes that have just ended hold it a moment longer.
			require.Eventually(t, func() bool { return os.Remove(group) == nil }, time.Minute, 5*time.Millisecond)
		})
		limit := map[bool]string{true: "cpu.max", false: "cpu.cfs_quota_us"}[m.V2]
		if os.WriteFile(filepath.Join(group, limit), []byte("10000"), 0o600) != nil {
			continue // the controller is the other version's
		}
		// However busy the machine is, the group gets its tenth, and is throttled for it.
		weight, most := "cpu.shares", "262144"
		if m.V2 {
			weight, most = "cpu.weight", "10000"
		}
		require.NoError(t, os.WriteFile(filepath.Join(group, weight), []byte(most), 0o600))
		join(t, group, pid)
		return group
	}
	t.Skip("no cgroup file system here lets us limit a CPU")
	return ""
}

func join(t *testing.T, group string, pid int) {
	t.Helper()
	err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
	if err != nil {
		require.ErrorIs(t, err, unix.ESRCH)
	}
}

// A sidecar with a cgroup namespace of its own sees the group of the process
// next to it as "/../…", and finds it through the process's own mounts.
func TestCgroupBesideUs(t *testing.T) {
	proctest.NeedRoot(t)
	fs := hostfs.Real(t)
	app := proctest.Start(t, "wait", "", func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	})
	makeCPUGroup(t, fs, app.PID())
	beside := proctest.Start(t, "wait", "")
	own := makeCPUGroup(t, fs, beside.PID())
	t.Setenv("HOSTPROC_TEST_CGROUP", own)
	out, err := proctest.Command(t, "beside", strconv.Itoa(app.PID())).Output()
	require.NoError(t, err)
	require.JSONEq(t, `{"path": "/../tcpdiag-test-`+strconv.Itoa(app.PID())+`", "limit": 0.1}`, string(out))
}

func TestID(t *testing.T) {
	scope := podSlice + "/cri-containerd-" + hexID + ".scope"
	fs := fakeCgroups(t, map[string]string{
		"1/mountinfo":                        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
		"7/cgroup":                           "0::" + scope + "\n",
		"8/cgroup":                           "0::/system.slice/tomcat.service\n",
		"9/cgroup":                           "0::/../.." + scope + "\n",
		"10/cgroup":                          "3:memory:/docker/" + hexID + "\n",
		"sys/fs/cgroup" + scope + "/cpu.max": "max 100000\n",
		"sys/fs/cgroup/system.slice/tomcat.service/cpu.max":    "max 100000\n",
		"sys/fs/cgroup/system.slice/unrelated.service/cpu.max": "max 100000\n",
	})
	for pid, want := range map[int]struct {
		folder    string
		container bool
	}{7: {scope, true}, 8: {"/system.slice/tomcat.service", false}, 9: {"", true}, 10: {"", true}, 11: {"", false}} {
		id, container := ID(fs, pid)
		require.Equal(t, want.container, container, pid)
		if want.folder == "" {
			require.Zero(t, id, pid)
			continue
		}
		var st unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(fs.Cgroups()[0].Point, want.folder), &st))
		require.Equal(t, st.Ino, id, pid)
	}
}

// Who owns a group names those below it as he likes, and mounts what he likes: neither makes him another's pod or container.
func TestGroupsThatClaimAPod(t *testing.T) {
	other := strings.Repeat("a", 64)
	mounts := "50 40 8:1 /home/mallory/pods/" + uid + "/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"
	for _, c := range []struct{ path, pod, container string }{
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/pod" + uid, "", ""},
		{"/user.slice/user-1000.slice/user@1000.service/kubepods-pod" + uidU + ".slice/cri-containerd-" + hexID + ".scope", "", hexID},
		{"/../../../user.slice/user-1000.slice/session-3.scope", "", ""},
		{"/../../../user.slice/user-1000.slice/docker-" + hexID + ".scope", "", hexID},
		{"/../../../system.slice/mine.service", "", ""},
		{podSlice + "/cri-containerd-" + hexID + ".scope/docker-" + other + ".scope", uid, hexID},
		{"/docker/" + hexID + "/kubepods/pod" + uid + "/" + other, "", hexID},
		{"/../cri-containerd-" + hexID + ".scope", uid, hexID},
		{"/..", uid, ""},
	} {
		fs := fakeCgroups(t, map[string]string{"7/cgroup": "0::" + c.path + "\n", "7/mountinfo": mounts})
		got, err := Of(fs, 7)
		require.NoError(t, err)
		require.Equal(t, c.pod, got.PodUID, c.path)
		require.Equal(t, c.container, got.ContainerID, c.path)
	}
}

// Who is given a group can make thousands below it, one in the other and each with a limit. Those that are read are the outermost, which
// others set, and the innermost.
func TestNestedGroups(t *testing.T) {
	nested := podSlice + strings.Repeat("/a", 1000)
	files := map[string]string{
		"1/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
		"7/cgroup":    "0::" + nested + "\n",
		"sys/fs/cgroup" + podSlice + "/memory.max": "536870912\n",
		"sys/fs/cgroup" + nested + "/cpu.stat":     cpuStat,
	}
	for _, dir := range levels(nested, 100) {
		files["sys/fs/cgroup"+dir+"/cpu.max"] = "150000 100000\n"
		files["sys/fs/cgroup"+dir+"/cpu.stat"] = cpuStat
	}
	fs := fakeCgroups(t, files)
	c, err := Of(fs, 7)
	require.NoError(t, err)
	require.Equal(t, new(uint64(536870912)), c.MemoryLimit)
	require.Equal(t, new(uint64(112*mostLevels)), c.NrThrottled)
	f, err := OpenThrottle(fs, 7)
	require.NoError(t, err)
	defer f.Close()
	require.Len(t, f.stats, mostLimited)

	require.Equal(t, []string{"/a/b", "/a", "/"}, levels("a/b", 4))
	require.Equal(t, []string{"/a/b/c/d", "/a/b/c", "/a", "/"}, levels("a/b/c/d", 4))
}
