package hostproc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrFileSystem says that a file lies on a file system that is not read for
// another process: its reads may wait for ever (FUSE), show what is nobody's
// configuration (proc, sysfs), or have effects (device nodes).
var ErrFileSystem = errors.New("not a file system that is read for other processes")

// maxMountInfo bounds what is read of a list of mounts; sysctl fs.mount-max
// allows 100,000 of them.
const maxMountInfo = 8 << 20

// maxKind bounds a file system's name in an error.
const maxKind = 32

// Mounts are the file systems of a process's mounts by mount id, which is unique
// in the whole system while the mount lasts (proc_pid_mountinfo(5), fields 1
// and 9).
type Mounts struct {
	types  map[int]string
	reader Reader
	// foreign: the process is in another user namespace, where anybody may mount an
	// overlay of whatever file system, also of one that does not answer.
	foreign bool
}

// Reader is who reads, which decides what it may wait for.
type Reader int

const (
	// Agent must not wait for anybody: local file systems only.
	Agent Reader = iota
	// Cgroups is an Agent that reads control groups.
	Cgroups
	// Disposable may wait for ever and be abandoned: file systems behind a network
	// too, and a mount that is in no list (a chroot's own) is asked for its type.
	Disposable
)

// ReadMounts reads lists of mounts in the form of mountinfo. foreign: of a process in
// another user namespace.
func ReadMounts(reader Reader, foreign bool, lists ...io.Reader) (*Mounts, error) {
	m := &Mounts{types: make(map[int]string), reader: reader, foreign: foreign}
	for _, list := range lists {
		lines := bufio.NewScanner(io.LimitReader(list, maxMountInfo))
		lines.Buffer(nil, 64<<10)
		for lines.Scan() {
			if id, kind, ok := parseMount(lines.Bytes()); ok {
				m.types[id] = kind
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("hostproc: mountinfo: %w", err)
		}
	}
	return m, nil
}

// parseMount takes "36 35 98:0 / /mnt rw - ext3 /dev/root rw".
func parseMount(line []byte) (id int, kind string, ok bool) {
	number, _, _ := bytes.Cut(line, []byte(" "))
	id, err := strconv.Atoi(string(number))
	if err != nil {
		return 0, "", false
	}
	_, after, ok := bytes.Cut(line, []byte(" - "))
	name, _, _ := bytes.Cut(after, []byte(" "))
	return id, string(name), ok
}

// admit says whether a file found with O_PATH may be used. Until it is admitted
// nothing is asked of its file system: the mount id comes from the descriptor.
func (m *Mounts) admit(fd, mount int) error {
	kind, listed := m.types[mount]
	if !listed && m.reader == Disposable {
		return admitUnlisted(fd)
	}
	if m.reader.may(kind) && (kind != "overlay" || !m.foreign || m.reader == Disposable) {
		return nil
	}
	kind, _, _ = strings.Cut(kind, ".") // fuse.NAME: the name is the mounter's choice
	return fmt.Errorf("%q: %w", kind[:min(len(kind), maxKind)], ErrFileSystem)
}

// may names the file systems whose files are ordinary ones.
func (r Reader) may(kind string) bool {
	switch kind {
	case "ext2", "ext3", "ext4", "xfs", "btrfs", "bcachefs", "f2fs", "zfs", "jfs", "nilfs2", "reiserfs",
		"tmpfs", "ramfs", "rootfs", "overlay", "aufs",
		"squashfs", "erofs", "iso9660", "udf", "vfat", "exfat", "ntfs3":
		return true
	case "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs":
		return r == Disposable
	case "sysfs", "cgroup", "cgroup2":
		return r == Cgroups
	}
	return false
}

// admitUnlisted goes by the type that the file system itself names (statfs(2)).
func admitUnlisted(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return fmt.Errorf("statfs: %w", err)
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.SQUASHFS_MAGIC:
		return nil
	}
	return fmt.Errorf("%#x: %w", st.Type, ErrFileSystem)
}

// mountOf is the id of the mount on which a file was found. The kernel takes it
// from the descriptor, without asking the file system (fdinfo's mnt_id, Linux
// 3.15).
func mountOf(fd int) (int, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(info) {
		if text, ok := bytes.CutPrefix(line, []byte("mnt_id:")); ok {
			return strconv.Atoi(string(bytes.TrimSpace(text)))
		}
	}
	return 0, fmt.Errorf("fdinfo: no mnt_id: %w", ErrMalformed)
}
