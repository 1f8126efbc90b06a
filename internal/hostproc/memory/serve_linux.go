package memory

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// Socket is the descriptor at which a child finds its socket: the first of exec.Cmd's
// ExtraFiles.
const Socket = 3

// Serve is the work of a process that a Reader started: it reads in the files that it is
// handed, until nobody is there any more. It wants nothing but reading, and may stand still for ever.
func Serve() error {
	if _, err := unix.Write(Socket, []byte{0}); err != nil { // it is ready
		return os.NewSyscallError("write", err)
	}
	request, rights := make([]byte, 4+8*mostAddresses), make([]byte, unix.CmsgSpace(4))
	for {
		n, size, _, _, err := unix.Recvmsg(Socket, request, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return os.NewSyscallError("recvmsg", err)
		case n < 4:
			return nil
		}
		if _, err := unix.Write(Socket, answer(request[:n], handed(rights[:size]))); err != nil {
			return os.NewSyscallError("write", err)
		}
	}
}

// handed is the file that came with a request, -1 without one.
func handed(rights []byte) int {
	messages, _ := unix.ParseSocketControlMessage(rights)
	for i := range messages {
		if list, err := unix.ParseUnixRights(&messages[i]); err == nil && len(list) == 1 {
			return list[0]
		}
	}
	return -1
}

// answer reads what is asked for, and closes the file.
func answer(request []byte, file int) []byte {
	defer func() { _ = unix.Close(file) }()
	size := int(min(binary.NativeEndian.Uint32(request), most))
	addresses := request[4:]
	out := make([]byte, 0, len(addresses)/8*(4+size))
	for ; len(addresses) >= 8; addresses = addresses[8:] {
		head := len(out)
		out = binary.NativeEndian.AppendUint32(out, nothing)
		n, err := unix.Pread(file, out[len(out):len(out)+size:len(out)+size], int64(binary.NativeEndian.Uint64(addresses)))
		if err == nil {
			binary.NativeEndian.PutUint32(out[head:], uint32(n))
			out = out[:len(out)+n]
		}
	}
	return out
}
