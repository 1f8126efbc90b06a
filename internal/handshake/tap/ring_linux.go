package tap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// size is that of a ring: a block is handed over when it is full or retireAfter
// old.
type size struct{ block, blocks int }

func (s size) bytes() int { return s.block * s.blocks }

const (
	frameSize   = 256 // a multiple of TPACKET_ALIGNMENT; V3 packs packets regardless
	retireAfter = 40 * time.Millisecond
	// busyPackets within retireAfter are more than few: 1,600 packets a second.
	busyPackets = 64
)

// large holds some 6,500 packets: a third of a second of 10,000 new connections
// a second. It has many blocks, as a packet takes a whole one where no other comes
// within retireAfter: at any rate below 2,500 packets a second the reader may be
// away for two seconds and a half.
func large() size { return inPages(size{1 << 14, 64}) }

// small holds some 400, and two thirds of a second of fewer.
func small() size { return inPages(size{1 << 12, 16}) }

// inPages has blocks of at least a page, which is what the kernel takes.
func inPages(s size) size { return size{max(s.block, os.Getpagesize()), s.blocks} }

// ring is an AF_PACKET socket that shows packets in memory shared with the
// kernel (TPACKET_V3, Documentation/networking/packet_mmap.rst), from their
// network header on (SOCK_DGRAM).
type ring struct {
	file   *os.File
	conn   syscall.RawConn
	ready  *ready // once a block has been handed over
	size   size
	memory []byte
	next   int // block
	lost   uint64
	mark   uint32 // of the interface of its packets
	recent uint32 // packets since
	since  time.Duration
	busy   bool // busyPackets came within retireAfter
	taken  int  // blocks of the latest read
}

// openRing opens it in the network namespace of the calling thread. It needs
// CAP_NET_RAW.
func openRing(program []bpf.Instruction, s size) (*ring, error) {
	// Protocol 0: nothing arrives before the filter is there and bind is called.
	// It is not made non-blocking, or os.NewFile would hand it to the runtime's poller (see ready).
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("tap: packet socket: %w", err)
	}
	r := &ring{file: os.NewFile(uintptr(fd), "packet ring"), size: s}
	if err := r.setUp(fd, program); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *ring) setUp(fd int, program []bpf.Instruction) (err error) {
	if err := attach(fd, program); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return fmt.Errorf("tap: TPACKET_V3: %w", err)
	}
	request := unix.TpacketReq3{
		Block_size: uint32(r.size.block), Block_nr: uint32(r.size.blocks), Frame_size: frameSize, Frame_nr: uint32(r.size.bytes() / frameSize),
		Retire_blk_tov: uint32(retireAfter.Milliseconds()),
	}
	if err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return fmt.Errorf("tap: ring of %d bytes: %w", r.size.bytes(), err)
	}
	r.memory, err = unix.Mmap(fd, 0, r.size.bytes(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("tap: map the ring: %w", err)
	}
	all := &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})}
	if err := unix.Bind(fd, all); err != nil {
		return fmt.Errorf("tap: bind: %w", err)
	}
	if r.conn, err = r.file.SyscallConn(); err == nil {
		r.ready, err = watch(fd)
	}
	return err
}

func attach(fd int, program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return fmt.Errorf("tap: filter: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
		return fmt.Errorf("tap: attach the filter: %w", err)
	}
	return nil
}

// refilter replaces the program at once; no packet passes unfiltered.
func (r *ring) refilter(program []bpf.Instruction) (err error) {
	if controlled := r.conn.Control(func(fd uintptr) { err = attach(int(fd), program) }); controlled != nil {
		return fmt.Errorf("tap: %w", controlled)
	}
	return err
}

// ignoreOutgoing says whether the kernel leaves out what leaves (since Linux 4.20): it
// does not clone it then.
func (r *ring) ignoreOutgoing(on bool) (err error) {
	value := 0
	if on {
		value = 1
	}
	controlled := r.conn.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, value)
	})
	if err := errors.Join(controlled, err); err != nil {
		return fmt.Errorf("tap: ignore outgoing packets: %w", err)
	}
	return nil
}

// Offsets in a block (struct tpacket_block_desc) and in a packet of it (struct
// tpacket3_hdr, and struct sockaddr_ll behind it).
const (
	blockStatus  = 8
	blockPackets = 12
	blockFirst   = 16

	packetNext    = 0
	packetSec     = 4
	packetNsec    = 8
	packetSnaplen = 12
	packetLen     = 16
	packetStatus  = 20
	packetNet     = 26

	linkAddr  = unix.SizeofTpacket3Hdr // TPACKET_ALIGN of it
	linkIndex = linkAddr + 4
	linkType  = linkAddr + 10
)

// read calls packet for what the kernel has handed over; false if that was
// nothing.
func (r *ring) read(packet func(stamp time.Duration, b []byte, link packet.Link)) (any bool) {
	for r.taken = 0; r.taken < r.size.blocks; r.taken++ {
		block := r.memory[r.next*r.size.block:][:r.size.block]
		status := (*uint32)(unsafe.Pointer(&block[blockStatus])) // aligned: mmap's pages
		if atomic.LoadUint32(status)&unix.TP_STATUS_USER == 0 {
			break
		}
		r.eachPacket(block, packet)
		atomic.StoreUint32(status, unix.TP_STATUS_KERNEL)
		r.next = (r.next + 1) % r.size.blocks
	}
	return r.taken > 0
}

func (r *ring) eachPacket(block []byte, packet func(stamp time.Duration, b []byte, link packet.Link)) {
	ne := binary.NativeEndian
	at := block[ne.Uint32(block[blockFirst:]):]
	packets := ne.Uint32(block[blockPackets:])
	r.count(stampOf(at), packets)
	for range packets {
		stamp, b, link := decodeHeader(at)
		link.Index ^= r.mark
		packet(stamp, b, link)
		at = at[ne.Uint32(at[packetNext:]):]
	}
}

// count notes whether many packets come.
func (r *ring) count(at time.Duration, packets uint32) {
	if at-r.since >= retireAfter {
		r.since, r.recent = at, 0
	}
	r.recent += packets
	r.busy = r.busy || r.recent >= busyPackets
}

func stampOf(p []byte) time.Duration {
	ne := binary.NativeEndian
	return time.Duration(ne.Uint32(p[packetSec:]))*time.Second + time.Duration(ne.Uint32(p[packetNsec:]))
}

func decodeHeader(p []byte) (stamp time.Duration, b []byte, link packet.Link) {
	ne := binary.NativeEndian
	stamp = stampOf(p)
	status := ne.Uint32(p[packetStatus:])
	kind := p[linkType]
	link = packet.Link{
		Incoming: kind == unix.PACKET_HOST,
		Outgoing: kind == unix.PACKET_OUTGOING,
		Index:    ne.Uint32(p[linkIndex:]),
		Length:   int(ne.Uint32(p[packetLen:])),
		Verified: status&(unix.TP_STATUS_CSUM_VALID|unix.TP_STATUS_CSUMNOTREADY) != 0,
	}
	if ne.Uint16(p[linkAddr+8:]) == unix.ARPHRD_LOOPBACK {
		link.Outgoing = link.Incoming
	}
	net := int(ne.Uint16(p[packetNet:]))
	return stamp, p[net : net+int(ne.Uint32(p[packetSnaplen:]))], link
}

// losses is how many packets found no room, since the ring was opened.
func (r *ring) losses() (uint64, error) {
	var stats *unix.TpacketStatsV3
	var err error
	controlled := r.conn.Control(func(fd uintptr) {
		stats, err = unix.GetsockoptTpacketStatsV3(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	})
	if err := errors.Join(controlled, err); err != nil {
		return r.lost, fmt.Errorf("tap: ring statistics: %w", err)
	}
	r.lost += uint64(stats.Drops) // reading sets it to 0
	return r.lost, nil
}

func (r *ring) close() error { return r.unmap(r.stop()) }

// stop ends a wait for packets, and all packets.
func (r *ring) stop() error {
	if r.ready != nil {
		r.ready.close()
	}
	return r.file.Close()
}

// unmap gives the memory back; nobody may be reading it.
func (r *ring) unmap(err error) error {
	if r.memory != nil {
		err = errors.Join(err, unix.Munmap(r.memory))
		r.memory = nil
	}
	return err
}
