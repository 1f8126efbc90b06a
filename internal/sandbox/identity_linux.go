package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// ErrIdentity says that a process could not become the user it was to be.
var ErrIdentity = errors.New("cannot take its user and groups")

// Identity is whose files may be read: a process's file system ids and its
// supplementary groups.
type Identity struct {
	UID, GID uint32
	Groups   []uint32
}

// Become takes an identity and gives up all capabilities, and reads back what
// came of it. With ErrIdentity this process is not the one that it was to be, and
// without capabilities all the same; with another error nothing is certain.
func Become(id Identity) error {
	if err := allThreads("prctl PR_SET_NO_NEW_PRIVS", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return err
	}
	// A process with the same user id could otherwise read this process's memory, and
	// use the folders that it has open (ptrace(2): a dumpable target).
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: prctl PR_SET_DUMPABLE: %w", err)
	}
	// Who has the ids already and may not set groups keeps its own: processes of
	// one user and group can trace each other, so that nothing stands between them.
	keep := is(id) && !mayChange()
	var switched error
	if !keep {
		switched = switchTo(id)
	}
	if verify(status.powerless) != nil { // capset(2) may be forbidden where it is not needed
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	if err := verify(status.powerless); err != nil {
		return err
	}
	err := verify(func(s status) error {
		if err := s.is(id); err != nil || keep {
			return err
		}
		return s.hasGroups(id)
	})
	if err != nil {
		return errors.Join(err, switched)
	}
	return nil
}

// switchTo sets the groups first: afterwards the right to do so is lost.
func switchTo(id Identity) error {
	groups := make([]int, len(id.Groups))
	for i, g := range id.Groups {
		groups[i] = int(g)
	}
	uid, gid := int(id.UID), int(id.GID)
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("sandbox: setgroups: %w", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("sandbox: setresgid %d: %w", gid, err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("sandbox: setresuid %d: %w", uid, err)
	}
	return nil
}

// MayBecome says whether Become can take an identity: this process has it, or the
// capabilities to take any.
func MayBecome(id Identity) bool { return is(id) || mayChange() && has(unix.CAP_SETUID) }

func is(id Identity) bool {
	return unix.Getuid() == int(id.UID) && unix.Geteuid() == int(id.UID) &&
		unix.Getgid() == int(id.GID) && unix.Getegid() == int(id.GID)
}

// mayChange says whether CAP_SETGID is in force.
func mayChange() bool { return has(unix.CAP_SETGID) }

// has says whether a capability is in force.
func has(capability uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<capability) != 0
}

// dropCapabilities empties the permitted, effective, inheritable and ambient
// sets of every thread. The bounding set matters only to execve(2), which
// no_new_privs and Confine leave without effect.
func dropCapabilities() error {
	if err := allThreads("prctl PR_CAP_AMBIENT", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL); err != nil {
		return err
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := new([2]unix.CapUserData)
	var pinned runtime.Pinner
	defer pinned.Unpin()
	pinned.Pin(header)
	pinned.Pin(data)
	return allThreads("capset", unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)))
}

func allThreads(what string, trap, a, b uintptr) error {
	if _, _, errno := psx.Syscall6(trap, a, b, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("sandbox: %s: %w", what, errno)
	}
	return nil
}

func sameGroups(a, b []uint32) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
