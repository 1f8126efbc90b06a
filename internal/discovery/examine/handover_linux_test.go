package examine

import (
	"io/fs"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// What comes through the socket may be anything: the child has read a stranger's bytes.
func TestWhatAChildHandsOver(t *testing.T) {
	open := func() int {
		f, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		fd, err := unix.Dup(int(f.Fd()))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return fd
	}
	for name, c := range map[string]struct {
		message string
		files   int
		want    error // nil: a file, or nothing at all
	}{
		"a file":                        {message: "f", files: 1},
		"two files":                     {message: "f", files: 2},
		"many files and words":          {message: "f and more", files: 200},
		"nothing":                       {},
		"no file where one should be":   {message: "f", want: errPerfData},
		"none, and a file all the same": {message: "n", files: 1, want: hsperf.ErrNoPerfData},
		"denied":                        {message: "d", want: fs.ErrPermission},
		"failed":                        {message: "x", want: errPerfData},
		"a byte that means nothing":     {message: "\x00", files: 1, want: errPerfData},
	} {
		t.Run(name, func(t *testing.T) {
			var cmd exec.Cmd
			ours, err := passage(&cmd)
			require.NoError(t, err)
			before := proctest.OpenFiles(t)
			var fds []int
			for range c.files {
				fds = append(fds, open())
			}
			if c.message != "" {
				require.NoError(t, unix.Sendmsg(int(cmd.ExtraFiles[0].Fd()), []byte(c.message), unix.UnixRights(fds...), nil, 0))
			}
			for _, fd := range fds {
				require.NoError(t, unix.Close(fd))
			}
			got := received(ours)
			switch {
			case c.message == "":
				require.Equal(t, PerfData{}, got)
			case c.want == nil:
				require.NoError(t, got.Err)
				require.NoError(t, got.File.Close())
			default:
				require.ErrorIs(t, got.Err, c.want)
				require.Nil(t, got.File)
			}
			require.LessOrEqual(t, proctest.OpenFiles(t), before, "what was not asked for is closed")
			closeAll([]*os.File{ours, cmd.ExtraFiles[0]})
		})
	}
}
