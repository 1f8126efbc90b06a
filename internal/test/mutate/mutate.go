package mutate

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/cputime"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const (
	// How many mutations each target gets.
	fullCount, usualCount = 10_000, 100

	// What one input may take: the limits of a child that parses (see
	// discovery.Children), which counts what is allocated at once and not, as this
	// does, what is allocated altogether.
	maxCPU   = 2 * time.Second
	maxAlloc = 64 << 20
)

// Target is a fuzz target whose corpus is remembered.
type Target struct {
	f      *testing.F
	corpus [][]any
	share  int
}

// Into takes the place of a fuzz target.
func Into(f *testing.F) *Target {
	f.Helper()
	return &Target{f: f, share: 1}
}

// Rarely is for a body that runs many parsers with targets of their own: it gets a
// twentieth of the mutations.
func (m *Target) Rarely() { m.share = 20 }

// Add is testing.F's.
func (m *Target) Add(args ...any) {
	m.f.Helper()
	m.f.Add(args...)
	m.corpus = append(m.corpus, args)
}

// Fuzz is testing.F's; unless this is real fuzzing it adds mutations of what was
// added, and holds every input to the limits.
func (m *Target) Fuzz(body any) {
	m.f.Helper()
	if fuzzing() {
		m.f.Fuzz(body)
		return
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(m.f.Name()))
	r := rand.New(rand.NewPCG(name.Sum64(), 1))
	for range proof.Size(fullCount, usualCount) / m.share {
		if len(m.corpus) > 0 {
			m.f.Add(mutated(r, m.corpus)...)
		}
	}
	m.f.Fuzz(bounded(body, maxCPU, maxAlloc))
}

// fuzzing says that the fuzzer chooses the inputs (-fuzz), here or in the process that
// started this one.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}

// bounded is a fuzz target's body that fails when it takes too much. The
// allocations are the whole process's: of a test that runs alone.
func bounded(body any, maxCPU time.Duration, maxAlloc uint64) any {
	call := reflect.ValueOf(body)
	return reflect.MakeFunc(call.Type(), func(args []reflect.Value) []reflect.Value {
		t, ok := args[0].Interface().(*testing.T)
		if !ok {
			return call.Call(args)
		}
		before, begin := allocated(), cputime.Process()
		out := call.Call(args)
		if took := cputime.Process() - begin; took > maxCPU {
			t.Errorf("it took %v of CPU time, more than %v", took, maxCPU)
		}
		if bytes := allocated() - before; bytes > maxAlloc {
			t.Errorf("it allocated %d bytes, more than %d", bytes, maxAlloc)
		}
		return out
	}).Interface()
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
