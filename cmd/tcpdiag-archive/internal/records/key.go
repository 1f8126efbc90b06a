package records

import (
	"cmp"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
)

// KeyOf is the name of a recording's object: cluster/day/namespace/pod/ID. Those without a
// pod are below _host, those of a pod whose name is not known below _pod.
func KeyOf(p *Origin, h *recording.Header) string {
	namespace, pod := p.Namespace, p.Pod
	switch {
	case pod == "" && p.PodUID != "":
		namespace, pod = cmp.Or(namespace, "_pod"), p.PodUID
	case pod == "":
		namespace, pod = "_host", cmp.Or(p.Host, "_")
	}
	return path.Join(KeyPart(p.Cluster), dayOf(h.ID), KeyPart(namespace), KeyPart(pod), h.ID+Suffix)
}

// BeganAt is the time in an ID: who knows the ID knows the day.
func BeganAt(id string) (time.Time, error) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return time.Time{}, errors.New("no ID")
	}
	return time.Parse("20060102T150405Z", parts[1])
}

// DayForm is how a day is written in a key.
const DayForm = "2006-01-02"

func dayOf(id string) string {
	at, err := BeganAt(id)
	if err != nil {
		return "_"
	}
	return at.Format(DayForm)
}

// Suffix is that of a recording's key, SumSuffix of its checksum beside it.
const (
	Suffix    = ".tcpdiag"
	SumSuffix = ".sha256"
)

// KeyPart is a part of a key that no store and no shell takes for something else.
func KeyPart(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '_'
	}, name)
	if strings.Trim(name, ".") == "" {
		return "_"
	}
	return name[:min(len(name), LongestName)]
}
