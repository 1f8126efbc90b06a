package sockdiag

import (
	"encoding/binary"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestTCPInfoOffsets pins each field against the kernel's struct tcp_info as
// x/sys/unix has it.
func TestTCPInfoOffsets(t *testing.T) {
	var k unix.TCPInfo
	for _, test := range []struct {
		name   string
		offset uintptr
		got    func(i TCPInfo) any
		want   any
	}{
		{"tcpi_last_data_sent", unsafe.Offsetof(k.Last_data_sent), func(i TCPInfo) any { return i.LastDataSent }, 7 * time.Millisecond},
		{"tcpi_last_data_recv", unsafe.Offsetof(k.Last_data_recv), func(i TCPInfo) any { return i.LastDataRecv }, 7 * time.Millisecond},
		{"tcpi_last_ack_recv", unsafe.Offsetof(k.Last_ack_recv), func(i TCPInfo) any { return i.LastAckRecv }, 7 * time.Millisecond},
		{"tcpi_rtt", unsafe.Offsetof(k.Rtt), func(i TCPInfo) any { return i.RTT }, uint32(7)},
		{"tcpi_bytes_acked", unsafe.Offsetof(k.Bytes_acked), func(i TCPInfo) any { return i.BytesAcked }, uint64(7)},
		{"tcpi_bytes_received", unsafe.Offsetof(k.Bytes_received), func(i TCPInfo) any { return i.BytesReceived }, uint64(7)},
		{"tcpi_segs_out", unsafe.Offsetof(k.Segs_out), func(i TCPInfo) any { return i.SegsOut }, uint32(7)},
		{"tcpi_segs_in", unsafe.Offsetof(k.Segs_in), func(i TCPInfo) any { return i.SegsIn }, uint32(7)},
		{"tcpi_notsent_bytes", unsafe.Offsetof(k.Notsent_bytes), func(i TCPInfo) any { return i.NotSent }, uint32(7)},
		{"tcpi_data_segs_in", unsafe.Offsetof(k.Data_segs_in), func(i TCPInfo) any { return i.DataSegsIn }, uint32(7)},
		{"tcpi_data_segs_out", unsafe.Offsetof(k.Data_segs_out), func(i TCPInfo) any { return i.DataSegsOut }, uint32(7)},
		{"tcpi_bytes_sent", unsafe.Offsetof(k.Bytes_sent), func(i TCPInfo) any { return i.BytesSent }, uint64(7)},
		{"tcpi_bytes_retrans", unsafe.Offsetof(k.Bytes_retrans), func(i TCPInfo) any { return i.BytesRetrans }, uint64(7)},
	} {
		b := make([]byte, unsafe.Sizeof(k))
		if _, wide := test.want.(uint64); wide {
			binary.NativeEndian.PutUint64(b[test.offset:], 7)
		} else {
			binary.NativeEndian.PutUint32(b[test.offset:], 7)
		}
		var i TCPInfo
		require.True(t, i.decode(b))
		require.Equal(t, test.want, test.got(i), test.name)
	}
	b := make([]byte, unsafe.Sizeof(k))
	b[unsafe.Offsetof(k.Retransmits)] = 7
	var i TCPInfo
	require.True(t, i.decode(b))
	require.Equal(t, TCPInfo{Size: len(b), Retransmits: 7}, i)

	require.EqualValues(t, tcpInfoTimes, unsafe.Offsetof(k.Total_retrans)+4)
	require.EqualValues(t, tcpInfoBytes, unsafe.Offsetof(k.Segs_in)+4)
	require.EqualValues(t, tcpInfoDataSegs, unsafe.Offsetof(k.Data_segs_out)+4)
	require.EqualValues(t, tcpInfoSent, unsafe.Offsetof(k.Bytes_retrans)+8)
}

// TestNumbers pins what the portable files spell out against x/sys/unix.
func TestNumbers(t *testing.T) {
	require.EqualValues(t, unix.AF_INET, FamilyIPv4)
	require.EqualValues(t, unix.AF_INET6, FamilyIPv6)
	require.EqualValues(t, unix.NLMSG_HDRLEN, nlmsgHeaderLen)
	require.EqualValues(t, unix.NLMSG_ERROR, nlmsgError)
	require.EqualValues(t, unix.NLMSG_DONE, nlmsgDone)
	require.EqualValues(t, unix.NLMSG_OVERRUN, nlmsgOverrun)
	require.EqualValues(t, unix.NLM_F_REQUEST, flagRequest)
	require.EqualValues(t, unix.NLM_F_DUMP_INTR, flagDumpIntr)
	require.EqualValues(t, unix.NLM_F_DUMP, flagDump)
	require.EqualValues(t, unix.SizeofNlAttr, attrHeaderLen)
	require.EqualValues(t, unix.SOCK_DIAG_BY_FAMILY, sockDiagByFamily)
	require.EqualValues(t, unix.IPPROTO_TCP, protoTCP)
	require.EqualValues(t, 4*unix.SK_MEMINFO_DROPS, memInfoDrops)
	require.EqualValues(t, unix.BPF_TCP_LISTEN, Listen)
	require.EqualValues(t, unix.BPF_TCP_CLOSING, Closing)
}
