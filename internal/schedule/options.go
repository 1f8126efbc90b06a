package schedule

import (
	"log/slog"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/evidence/reader"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/kubelet"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// Options say what to watch and how often.
type Options struct {
	watchlist.Options

	SampleInterval time.Duration // between two samples of the accept queues
	Lately         time.Duration // of the window, what a status looks back on

	// CPUTime is what the whole program has used so far: where it is known, all of
	// it counts against the clocks' share of a core, and else their own.
	CPUTime func() time.Duration

	Thresholds reading.Thresholds
	Log        *slog.Logger
}

// Defaults are the options of an agent without any flags.
func Defaults() Options {
	return Options{
		Options: watchlist.Options{
			ScanInterval: time.Second,
			Window:       time.Minute,
			MaxListeners: 100,
			KubeletLogs:  kubelet.DefaultLogs,
			Now:          time.Now,
		},
		SampleInterval: 10 * time.Millisecond,
		Lately:         model.Quiet,
		Thresholds:     reading.DefaultThresholds(),
		Log:            slog.New(slog.DiscardHandler),
	}
}

// Sources are what is asked besides the kernel's sockets.
type Sources struct {
	watchlist.Sources
	// Evidence opens a reader of a listener's process; nil for reader.Open.
	Evidence reader.OpenAcceptor
}

// openJVM opens the performance data that the examinations have found.
func (s *Sources) openJVM() reader.OpenJVM {
	if s.Discovery == nil {
		return func(hostproc.ProcessKey) (*hsperf.File, error) { return nil, discovery.ErrUnexamined }
	}
	return s.Discovery.JVM
}
