package hostproc

import (
	"bytes"
	"encoding/binary"
	"errors"
	iofs "io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// rights are whose a process is at one moment: the kernel writes all of them from
// one struct cred (task_state in fs/proc/array.c), so one reading is consistent and
// two need not be.
type rights struct {
	uids, gids [4]uint32 // real, effective, saved, file system
	groups     []uint32
}

func (r rights) equal(other rights) bool {
	return r.uids == other.uids && r.gids == other.gids && slices.Equal(r.groups, other.groups)
}

// single says that all ids are equal.
func (r rights) single() bool {
	for i := range r.uids {
		if r.uids[i] != r.uids[0] || r.gids[i] != r.gids[0] {
			return false
		}
	}
	return true
}

// parseRights takes /proc/PID/status (proc_pid_status(5)).
func parseRights(status []byte) (rights, error) {
	var r rights
	for key, ids := range map[string]*[4]uint32{"Uid": &r.uids, "Gid": &r.gids} {
		list, err := idsIn(status, key)
		if err != nil || len(list) != len(ids) {
			return rights{}, ErrMalformed
		}
		copy(ids[:], list)
	}
	var err error
	r.groups, err = idsIn(status, "Groups")
	return r, err
}

func idsIn(status []byte, key string) (ids []uint32, err error) {
	_, rest, ok := bytes.Cut(status, []byte("\n"+key+":"))
	if !ok {
		return nil, ErrMalformed
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	for word := range strings.FieldsSeq(string(line)) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, ErrMalformed
		}
		ids = append(ids, uint32(n))
	}
	return ids, nil
}

// Auxiliary vector types (getauxval(3)).
const (
	auxUID  = 11
	auxEUID = 12
	auxGID  = 13
	auxEGID = 14
)

// rightsOf are a process's, and ErrSetID unless it runs as who started it. All its
// ids are then equal now, and were when its program was started: the kernel keeps
// the real and the effective ones of that moment out of the process's reach.
func (fs FS) rightsOf(pid int) (rights, error) {
	status, err := os.ReadFile(fs.Path(pid, "status"))
	if err != nil {
		return rights{}, fs.Wrap(pid, "status", err)
	}
	r, err := parseRights(status)
	switch {
	case err != nil:
		return rights{}, fs.Wrap(pid, "status", err)
	case !r.single():
		return r, ErrSetID
	}
	aux, err := os.ReadFile(fs.Path(pid, "auxv"))
	if errors.Is(err, iofs.ErrPermission) {
		// Its mode is 0400: without CAP_DAC_READ_SEARCH only the ids of now are
		// known, which a set-user-ID program's may all be its owner's.
		return r, nil
	}
	if err != nil {
		return r, fs.Wrap(pid, "auxv", err)
	}
	values := auxiliary(aux)
	if len(values) < 4 || values[auxUID] != values[auxEUID] || values[auxGID] != values[auxEGID] {
		return r, ErrSetID
	}
	return r, nil
}

// auxiliary are the ids of an auxiliary vector, of a process of our own word
// size.
func auxiliary(vector []byte) map[uint64]uint64 {
	ids := map[uint64]uint64{}
	for ; len(vector) >= 16; vector = vector[16:] {
		switch kind := binary.NativeEndian.Uint64(vector); kind {
		case auxUID, auxEUID, auxGID, auxEGID:
			ids[kind] = binary.NativeEndian.Uint64(vector[8:])
		}
	}
	return ids
}
