package examine

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// passFD is the descriptor at which a child finds the socket for the file: the first of
// exec.Cmd's ExtraFiles.
const passFD = 3

// pass hands the file over, or says why there is none, and closes the way.
func (s *subject) pass() {
	var rights []byte
	if s.jvm != nil {
		rights = unix.UnixRights(int(s.jvm.File().Fd()))
	}
	if unix.Sendmsg(passFD, []byte{perfDataKind(s.jvmErr)}, rights, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) == nil {
		_ = unix.Close(passFD)
	}
}

// passage is the parent's end of the socket; the other one is the child's passFD.
func passage(cmd *exec.Cmd) (ours *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(ends[1]), "passage")}
	return os.NewFile(uintptr(ends[0]), "passage"), nil
}

// received is what came through, which does not wait. What else a child that has become
// another program sends is closed.
func received(ours *os.File) PerfData {
	kind, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := unix.Recvmsg(int(ours.Fd()), kind, rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return PerfData{}
	}
	var files []*os.File
	messages, _ := unix.ParseSocketControlMessage(rights[:size])
	for i := range messages {
		list, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range list {
			files = append(files, os.NewFile(uintptr(fd), "performance data"))
		}
	}
	if len(files) == 0 {
		return newPerfData(kind[0], nil)
	}
	closeAll(files[1:])
	return newPerfData(kind[0], files[0])
}
