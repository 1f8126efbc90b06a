package e2e

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The user of the observed server. It has a name, or the JVM would write no
// counters (see namedApp).
const appID = "1001"

// A viewer is somebody who runs tcpdiag: by which ids, with which
// capabilities, and what of the system is in sight.
type viewer struct {
	name     string
	uid, gid string   // "" is root's
	caps     []string // the only ones, setpriv's names; of a user other than root they are ambient
	all      bool     // all that root has
	net      string   // path of a network namespace to start in, "" for the test's
	pids     int      // a process whose pid namespace it shares, 0 for the test's
	alone    bool     // in a pid namespace of its own, as a container next to the server's
	hidepid  bool     // behind a /proc that hides the processes of others
}

// in is the same viewer in another network namespace.
func (v viewer) in(path string) viewer {
	v.net = path
	return v
}

// line is the command line of tcpdiag for this viewer: each of its programs
// replaces itself with the next (except unshare, for it makes a pid namespace).
func (v viewer) line(tcpdiag string, args ...string) []string {
	var line []string
	if v.net != "" {
		line = append(line, "nsenter", "--net="+v.net, "--")
	}
	if v.pids != 0 {
		line = append(line, "nsenter", "--target", strconv.Itoa(v.pids), "--pid", "--",
			"unshare", "--mount", "--mount-proc", "--")
	}
	if v.alone {
		line = append(line, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
	}
	if v.hidepid {
		line = append(line, "unshare", "--mount", "--", "sh", "-c", `mount -t proc -o hidepid=2 proc /proc && exec "$@"`, "sh")
	}
	return slices.Concat(line, v.setpriv(), []string{tcpdiag}, args)
}

// setpriv drops from the bounding set what the viewer is not to have: root's
// other capabilities are lost with the next execve.
func (v viewer) setpriv() []string {
	line := []string{"setpriv", "--pdeathsig", "KILL"}
	if v.uid != "" {
		line = append(line, "--reuid", v.uid, "--regid", v.gid, "--clear-groups")
	}
	if v.all {
		return line
	}
	only := "-all"
	for _, name := range v.caps {
		only += ",+" + name
	}
	line = append(line, "--bounding-set="+only, "--inh-caps="+only)
	if v.uid != "" && len(v.caps) > 0 {
		line = append(line, "--ambient-caps="+only)
	}
	return line
}

// runs starts `tcpdiag snapshot --output json` as the viewer, and answers what
// it said when asked.
func (v viewer) runs(t *testing.T, args ...string) func() (out []byte, errs string, code int) {
	t.Helper()
	a := artifacts(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	line := v.line(a.Tcpdiag, append([]string{"snapshot", "--output", "json"}, args...)...)
	a.Tcpdiag = line[0]
	type result struct {
		out, errs []byte
		code      int
		err       error
	}
	done := make(chan result, 1)
	go func() {
		defer cancel()
		var r result
		r.out, r.errs, r.code, r.err = a.Run(ctx, nil, line[1:]...)
		done <- r
	}()
	return func() ([]byte, string, int) {
		t.Helper()
		r := <-done
		require.NoError(t, r.err)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s said, of %v:\n%s%s", v.name, args, r.out, r.errs)
			}
		})
		return r.out, strings.TrimSpace(string(r.errs)), r.code
	}
}

// sees is the document of a viewer who must get one.
func (v viewer) sees(t *testing.T, args ...string) func() *rig.Document {
	t.Helper()
	run := v.runs(t, args...)
	return func() *rig.Document {
		t.Helper()
		out, errs, code := run()
		require.Zero(t, code, "%s: %s", v.name, errs)
		d, err := rig.Decode(out)
		require.NoError(t, err)
		return d
	}
}
