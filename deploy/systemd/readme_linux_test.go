package systemd

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every block of the README is run as it stands, one after the other, in a
// checkout on a machine that knows nothing of tcpdiag.
func TestREADME(t *testing.T) {
	needSystemd(t)
	checkout := files{"src/bin/tcpdiag": tcpdiag(t), "src/deploy/config/tcpdiag.yml": content(t, "../config/tcpdiag.yml")}
	for _, name := range []string{
		"tcpdiag.service", "tcpdiag.socket", "tcpdiag.default", "tcpdiag.modules",
		"same-user.conf", "all-users.conf", "all-namespaces.conf", "clients.conf",
	} {
		checkout["src/deploy/systemd/"+name] = content(t, name)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(content(t, "README.md"), -1)
	require.Len(t, blocks, 3)
	m := boot(t, checkout, "")
	for i, after := range []func(){
		func() { m.confined("0000000000000000") },
		func() { m.confined("00000000000800c4") },
		func() {
			m.run("systemctl", "is-active", "tcpdiag.socket", "tcpdiag.service")
			m.ready("http://127.0.0.1:10889/-/ready")
		},
	} {
		script := blocks[i][1]
		out := m.run("bash", "-ec", "cd /src\n"+script)
		t.Logf("%s%s", script, out)
		after()
	}
}
