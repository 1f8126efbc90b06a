package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ErrPowers says that a process still has what it gave up.
var ErrPowers = errors.New("privileges could not be given up")

// status is what the kernel says of one thread (proc_pid_status(5)).
type status map[string]string

// verify asks about every thread of this process.
func verify(check func(status) error) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/status")
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if err := check(parseStatus(text)); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	return nil
}

func parseStatus(text []byte) status {
	s := status{}
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(string(line), ":")
		s[name] = strings.TrimSpace(value)
	}
	return s
}

// powerless says that no capability is left, and that none can come back.
func (s status) powerless() error {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if strings.Trim(s[set], "0") != "" || s[set] == "" {
			return fmt.Errorf("%w: %s is %s", ErrPowers, set, s[set])
		}
	}
	if s["NoNewPrivs"] != "1" {
		return fmt.Errorf("%w: no_new_privs is %q", ErrPowers, s["NoNewPrivs"])
	}
	return nil
}

// is says that real, effective, saved and file system ids are those of an
// identity.
func (s status) is(id Identity) error {
	for name, want := range map[string]uint32{"Uid": id.UID, "Gid": id.GID} {
		ids, err := numbers(s[name])
		if err != nil || len(ids) != 4 {
			return fmt.Errorf("%w: %s %q", ErrIdentity, name, s[name])
		}
		for _, have := range ids {
			if have != want {
				return fmt.Errorf("%w: %s is %d and not %d", ErrIdentity, name, have, want)
			}
		}
	}
	return nil
}

func (s status) hasGroups(id Identity) error {
	groups, err := numbers(s["Groups"])
	if err != nil || !sameGroups(groups, id.Groups) {
		return fmt.Errorf("%w: Groups are %q", ErrIdentity, s["Groups"])
	}
	return nil
}

func numbers(text string) ([]uint32, error) {
	var out []uint32
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, err
		}
		out = append(out, uint32(n))
	}
	return out, nil
}
