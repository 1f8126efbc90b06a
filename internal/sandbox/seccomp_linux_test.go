package sandbox

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// asked is the filter's answer to a call: struct seccomp_data, in the byte order of the machine that x/net's plays.
func asked(t *testing.T, vm *bpf.VM, arch, number uint32, args ...uint32) uint32 {
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[callNumber:], number)
	binary.BigEndian.PutUint32(data[callArchitecture:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[callArguments+8*i:], a)
	}
	answer, err := vm.Run(data)
	require.NoError(t, err)
	return uint32(answer)
}

// Each system call there is, and those of other tables: what is permitted is the list, and nothing else.
func TestEachSystemCall(t *testing.T) {
	const pid = 4711
	arch, known := architecture()
	if !known {
		t.Skip("no filter for this architecture")
	}
	for kind, more := range map[calls][]uint32{
		opensFiles: {unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_GETXATTR}, isHanded: {unix.SYS_RECVMSG},
	} {
		vm, err := bpf.NewVM(callFilter(kind, arch, pid))
		require.NoError(t, err)
		permitted := append(harmless(), more...)
		for number := range uint32(2000) {
			want := deny
			switch {
			case slices.Contains(permitted, number):
				want = uint32(permit)
			case number == unix.SYS_CLONE3:
				want = absent
			case number == unix.SYS_OPENAT && kind == opensFiles:
				want = uint32(permit) // without flags that write
			}
			require.EqualValues(t, want, asked(t, vm, arch, number), number)
			require.EqualValues(t, deny, asked(t, vm, arch, number|1<<30), "x32: %d", number)
			for _, other := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
				require.EqualValues(t, deny, asked(t, vm, other, number), number)
			}
		}
		require.EqualValues(t, permit, asked(t, vm, arch, unix.SYS_CLONE, unix.CLONE_THREAD|unix.CLONE_VM))
		require.EqualValues(t, deny, asked(t, vm, arch, unix.SYS_CLONE, unix.CLONE_VM))
		require.EqualValues(t, permit, asked(t, vm, arch, unix.SYS_TGKILL, pid))
		require.EqualValues(t, deny, asked(t, vm, arch, unix.SYS_TGKILL, pid+1))
		for _, flag := range []uint32{unix.O_WRONLY, unix.O_RDWR, unix.O_CREAT, unix.O_TRUNC, unix.O_APPEND} {
			require.EqualValues(t, deny, asked(t, vm, arch, unix.SYS_OPENAT, 3, 0, flag))
		}
	}
	for _, forbidden := range []uint32{
		unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_KILL, unix.SYS_PTRACE, unix.SYS_MOUNT,
		unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_BPF, unix.SYS_IO_URING_SETUP, unix.SYS_OPENAT2, unix.SYS_PROCESS_VM_READV, unix.SYS_PIDFD_GETFD,
		unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_KEYCTL, unix.SYS_IOCTL, unix.SYS_PRCTL, unix.SYS_CAPSET,
	} {
		require.NotContains(t, harmless(), forbidden)
	}
}
