package rig

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// FillConntrack tracks as many connections as may be in this network namespace, less some that are left
// free, by ctnetlink: assured ones, which are not dropped early.
func (c *Case) FillConntrack(free int) {
	c.Helper()
	c.Must(fillConntrack(free))
}

// FlushConntrack ends that.
func (c *Case) FlushConntrack() {
	c.Helper()
	c.Must(netlink.ConntrackTableFlush(netlink.ConntrackTable))
}

func fillConntrack(free int) error {
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || most > 1<<20 {
		return fmt.Errorf("nf_conntrack_max is %s: %w", text, err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer socket.Close()
	const create = unix.NFNL_SUBSYS_CTNETLINK << 8 // IPCTNL_MSG_CT_NEW
	for i := range most + 100 {
		if free > 0 && i == most-free {
			return nil
		}
		request := nl.NewNetlinkRequest(create, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
		request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_NETFILTER: {Socket: socket}}
		request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET})
		client, server := net.IPv4(198, 18, byte(i>>14), 1).To4(), net.IPv4(198, 19, 0, 1).To4()
		request.AddRawData(tuple(1, client, server, uint16(1024+i&0x3fff), 53))
		request.AddRawData(tuple(2, server, client, 53, uint16(1024+i&0x3fff)))
		request.AddRawData(attribute(3, binary.BigEndian.AppendUint32(nil, 0xe))) // SEEN_REPLY, ASSURED, CONFIRMED
		request.AddRawData(attribute(7, binary.BigEndian.AppendUint32(nil, 600)))
		_, err := request.Execute(unix.NETLINK_NETFILTER, 0)
		switch {
		case err == syscall.ENOMEM: //nolint:errorlint // the library's own: full
			return nil
		case err == syscall.EEXIST: //nolint:errorlint // the same: from a call before
		case err != nil:
			return err
		}
	}
	return fmt.Errorf("%d connections, and no end", most)
}

func tuple(kind uint16, from, to net.IP, sport, dport uint16) []byte {
	addresses := append(attribute(1, from), attribute(2, to)...)
	ports := append(attribute(1, []byte{unix.IPPROTO_UDP}), attribute(2, binary.BigEndian.AppendUint16(nil, sport))...)
	ports = append(ports, attribute(3, binary.BigEndian.AppendUint16(nil, dport))...)
	return attribute(kind|unix.NLA_F_NESTED, append(attribute(1|unix.NLA_F_NESTED, addresses), attribute(2|unix.NLA_F_NESTED, ports)...))
}

func attribute(kind uint16, value []byte) []byte {
	out := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	out = append(binary.NativeEndian.AppendUint16(out, kind), value...)
	return append(out, make([]byte, -len(out)&3)...)
}
