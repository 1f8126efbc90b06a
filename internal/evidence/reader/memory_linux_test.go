package reader

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Why a JVM's counters are missing is said, once its examination has ended.
func TestWhyThereAreNoCounters(t *testing.T) {
	process := func(comm string) *model.Process { return &model.Process{PID: 7, Comm: comm} }
	read := func(comm string, err error) []model.Unavailable {
		var m processReader
		var miss facts.Missing
		m.readJVM(func() (*hsperf.File, error) { return nil, err }, time.Now(), process(comm), "as root", &miss)
		return miss.List
	}
	for _, comm := range []string{"java", "jsvc", "jsvc.exec"} {
		require.Empty(t, read(comm, discovery.ErrUnexamined))
		require.Equal(t, []model.Unavailable{noPerfData(7)}, read(comm, hsperf.ErrNoPerfData))
		require.Equal(t, []model.Unavailable{{What: "JVM counters (hsperfdata) of pid 7", Why: "permission denied", How: "as root"}}, read(comm, fs.ErrPermission))
		require.Equal(t, []model.Unavailable{{What: "JVM counters (hsperfdata) of pid 7", Why: "broken"}}, read(comm, errors.New("broken")))
	}
	require.Empty(t, read("nginx", errors.New("nobody asks")))
}
