package draws

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

var (
	seed   = flag.Uint64("seed", 1, "of TestDraws")
	number = flag.Int("draws", 300, "how many TestDraws draws")
	first  = flag.Int("first", 0, "the number of the first of them")
	course = flag.String("outcomes", "", "a file of what came of earlier draws, whose rows are in the table, too; TestDraws goes on from there")
	worlds = flag.Int("worlds", 2, "how many there are at the same time")
)

// intoEnv names the file that the outcomes are appended to.
const intoEnv = "TCPDIAG_DRAWS"

// TestDraw runs the draws that -run names: Draw/SEED/NUMBER, or Draw/SEED/^(4|5|6|7)$.
func TestDraw(t *testing.T) {
	parts := strings.Split(flag.Lookup("test.run").Value.String(), "/")
	if len(parts) != 3 {
		t.Skip("draws run where -run names them: Draw/SEED/NUMBER")
	}
	seed, err := strconv.ParseUint(strings.Trim(parts[1], "^$"), 10, 64)
	if err != nil {
		t.Skip("-run names no seed")
	}
	var numbers []int
	for name := range strings.SplitSeq(strings.Trim(parts[2], "^$()"), "|") {
		n, err := strconv.Atoi(name)
		if err != nil {
			t.Skip("-run names no draw")
		}
		numbers = append(numbers, n)
	}
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		c := rig.New(t, nil, fmt.Sprint(seed))
		w := open(c, newDraw(seed, numbers[0]))
		for _, n := range numbers {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				o := w.run(newDraw(seed, n))
				t.Logf("\n  draw:   %s\n  truth:  %s\n  said:   %s\n  agent:  %s\n  counts: %s\n  tried:  %s\n  so it is: %s %s", o.Draw, o.Truth, o.Said, o.Agent, o.Counts, o.Tried, o.Result, o.Why)
				report(t, o)
				if o.Result == wrong {
					t.Errorf("wrong: %s", o.Why)
				}
			})
		}
	})
}

// report appends an outcome to the file, where there is one.
func report(t *testing.T, o outcome) {
	t.Helper()
	path := os.Getenv(intoEnv)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		defer f.Close()
		err = json.NewEncoder(f).Encode(o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDraws runs many of them, each server in namespaces of its own, and writes the table.
func TestDraws(t *testing.T) {
	proof.Skip(t)
	nettest.Root(t)
	kit := rig.KitOf(t)
	kit.Tcpdiag()
	kit.Truth()
	kit.KeystoreFile()
	into := *course
	if into == "" {
		into = filepath.Join(t.TempDir(), "outcomes")
	}
	done := make(map[int]bool)
	for _, o := range read(t, into) {
		done[o.Number] = done[o.Number] || o.Seed == *seed
	}
	var blocks []block
	for n := *first; n < *first+*number; {
		b := block{seed: *seed}
		for server := n / perServer; n/perServer == server && n < *first+*number; n++ {
			if !done[n] {
				b.numbers = append(b.numbers, strconv.Itoa(n))
			}
		}
		if len(b.numbers) > 0 {
			blocks = append(blocks, b)
		}
	}
	inWorlds(t, into, blocks)
	outcomes := read(t, into)
	rig.Record(t, "docs/results/draws.md", table(outcomes))
	for _, o := range outcomes {
		if o.Result == wrong {
			t.Errorf("Draw/%d/%d: %s", o.Seed, o.Number, o.Why)
		}
	}
	t.Log(summary(outcomes))
}

// block is draws of one server.
type block struct {
	seed    uint64
	numbers []string
}

// inWorlds runs blocks, as many at the same time as -worlds says.
func inWorlds(t *testing.T, into string, blocks []block) {
	next := make(chan block)
	var running sync.WaitGroup
	for range *worlds {
		running.Go(func() {
			for b := range next {
				inWorld(t, into, b.seed, b.numbers)
			}
		})
	}
	for _, b := range blocks {
		next <- b
	}
	close(next)
	running.Wait()
}

// inWorld runs draws of one server in a process with a network namespace of its own.
func inWorld(t *testing.T, into string, seed uint64, numbers []string) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.timeout", "15m", "-test.run", fmt.Sprintf("^TestDraw$/^%d$/^(%s)$", seed, strings.Join(numbers, "|")))
	cmd.Env = append(os.Environ(), intoEnv+"="+into)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends
	defer runtime.UnlockOSThread()
	if out, err := cmd.CombinedOutput(); err != nil || testing.Verbose() {
		t.Logf("%s", out)
	}
}

// kept are draws of which tcpdiag said something wrong once, or nothing without need: what they found was fixed as a
// kind. One of connection tracking that is full is with them. Those whose truth was taken wrongly are not.
func kept() []block {
	return []block{
		{1, []string{"18", "19"}},
		{1, []string{"23"}},
		{2, []string{"6", "7"}},
		{2, []string{"12"}},
		{2, []string{"20", "22", "23"}},
		{2, []string{"29", "30", "31"}},
		{3, []string{"0"}},
		{3, []string{"12"}},
		{3, []string{"19"}},
		{3, []string{"21"}},
		{3, []string{"35"}},
		{3, []string{"38", "39"}},
		{3, []string{"41", "42"}},
		{7, []string{"5"}},
		{7, []string{"20", "21", "22"}},
		{7, []string{"26"}},
		{7, []string{"29", "30", "31"}},
		{26300, []string{"11"}},
		{26300, []string{"14"}},
		{26300, []string{"32"}},
		{26300, []string{"35"}},
		{26300, []string{"37"}},
		{26300, []string{"42"}},
		{26300, []string{"49"}},
		{26300, []string{"73"}},
		{26300, []string{"80"}},
		{26300, []string{"94"}},
		{900001, []string{"133"}},
		{751912484, []string{"7"}},
		{751912484, []string{"107"}},
		{751912484, []string{"124"}},
		{751912484, []string{"177", "178"}},
		{751912484, []string{"183"}},
		{751912484, []string{"207"}},
		{751912484, []string{"237"}},
		{751912484, []string{"255"}},
		{751912484, []string{"116"}},
		{2353982865, []string{"22"}},
		{2353982865, []string{"80"}},
		{2353982865, []string{"129"}},
		{2353982865, []string{"145"}},
		{2353982865, []string{"248"}},
		{2353982865, []string{"295"}},
	}
}

// TestKept runs them again.
func TestKept(t *testing.T) {
	proof.Skip(t)
	nettest.Root(t)
	kit := rig.KitOf(t)
	kit.Tcpdiag()
	kit.Truth()
	kit.KeystoreFile()
	into := filepath.Join(t.TempDir(), "outcomes")
	n := 0
	for _, b := range kept() {
		n += len(b.numbers)
	}
	inWorlds(t, into, kept())
	outcomes := read(t, into)
	if len(outcomes) != n {
		t.Errorf("%d of %d draws came to an outcome", len(outcomes), n)
	}
	for _, o := range outcomes {
		if o.Result == wrong {
			t.Errorf("Draw/%d/%d: %s\n  truth: %s\n  said:  %s\n  agent: %s", o.Seed, o.Number, o.Why, o.Truth, o.Said, o.Agent)
		}
	}
	t.Log(summary(outcomes))
}

func read(t *testing.T, path string) (all []outcome) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var o outcome
		if err := decoder.Decode(&o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Number, b.Number)) })
	return all
}
