package fleet

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// same are the labels by which two series are of one listener.
const same = "on (cluster, job, instance, netns, listener)"

// Selection is what is asked for; nothing is all.
type Selection struct{ Cluster, Namespace string }

// matchers of series that know the pod.
func (s Selection) matchers() string {
	if s.Namespace == "" {
		return s.agents()
	}
	return s.agents("namespace=" + strconv.Quote(s.Namespace))
}

// agents are matchers of any series: what an agent exports without a pod's labels.
func (s Selection) agents(others ...string) string {
	if s.Cluster != "" {
		others = append(others, "cluster="+strconv.Quote(s.Cluster))
	}
	return "{" + strings.Join(others, ",") + "}"
}

// questions are the expressions, of the recorded series or of the agents' own.
type questions struct {
	of    Selection
	rules bool
}

// status has the value 0 to 4, and the labels that say who it is.
func (q questions) status() string {
	if q.rules {
		return "listener:tcpdiag_status:max" + q.of.matchers()
	}
	return rawStatus(q.of)
}

// rawStatus is the rule listener:tcpdiag_status:max, of what is selected; a test holds
// them against each other.
func rawStatus(of Selection) string {
	v := func(status string) string {
		return "tcpdiag_listener_verdict_info" + of.agents(`status="`+status+`"`)
	}
	named, unnamed := more(of.matchers(), `pod!=""`), more(of.matchers(), `pod=""`)
	return fmt.Sprintf(`max by (cluster, job, instance, node, netns, listener, port, namespace, pod, container, process, cause) (
  (
    4 * %s
      or 3 * %s
      or 2 * %s
      or 1 * %s
      or 0 * %s
  ) * on (cluster, job, instance, netns, listener) group_left (node, port, namespace, pod, container, process) (
    tcpdiag_listener_info%s
      or label_replace(tcpdiag_listener_info%s, "pod", "$1", "pod_uid", "(.+)")
  )
)
or
max by (cluster, job, instance, node, netns, port, namespace, pod, cause) (
  label_replace(4 + (tcpdiag_target_up%s == 0), "cause", "no_listener", "", "")
)`, v("down"), v("losing"), v("saturated"), v("warning"), v("ok"), named, unnamed, of.matchers())
}

// lost is the increase of a counter in 3 minutes.
func lost(counter, matchers string) string {
	c := counter + matchers
	return fmt.Sprintf("(last_over_time(%s[3m]) - min_over_time(%s[3m]))", c, c)
}

// turnedAway are clients, dropped packets of the last 3 minutes: as the rules recorded them,
// or of the agents' counters, in the same way.
func (q questions) turnedAway(matchers string) string {
	if q.rules {
		return "listener:tcpdiag_clients_turned_away:increase3m" + matchers
	}
	return lost("tcpdiag_listener_clients_turned_away_total", matchers)
}

func (q questions) dropped(matchers string) string {
	if q.rules {
		return "listener:tcpdiag_dropped_packets:increase3m" + matchers
	}
	return lost("tcpdiag_listener_overflow_packets_total", matchers)
}

// trouble are the worst: those that are not ok, and those that have turned clients away.
// The value is 1,000,000 for each step of the status, and the clients turned away.
func (q questions) trouble(limit int) string {
	away := q.turnedAway(q.of.agents())
	bad := "listener:tcpdiag_trouble:max" + q.of.matchers()
	if !q.rules {
		bad = fmt.Sprintf("(%s) > 0 or (%s) and %s (%s) >= 1", q.status(), q.status(), same, away)
	}
	return fmt.Sprintf("topk(%d, 1e6 * (%s) + %s group_left () clamp_max(%s, 999999) or 1e6 * (%s))", limit, bad, same, away, bad)
}

// calm are the fullest of those that are ok. The value is how full they are, without the rules.
func (q questions) calm(limit int) string {
	ok := "((" + q.status() + ") == 0)"
	if q.rules { // two sets are cheaper than a sum of each pair
		return fmt.Sprintf("topk(%d, 1 + (%s and %s topk(%d, %s and %s %s)) or %s)", limit, ok, same, limit, q.fullest(q.of.agents()), same, ok, ok)
	}
	return fmt.Sprintf("topk(%d, %s + %s group_left () clamp_max(%s, 1) or %s)", limit, ok, same, q.fullest(q.of.agents()), ok)
}

// fullest is how full the fullest limit is.
func (q questions) fullest(matchers string) string {
	if q.rules {
		return "listener:tcpdiag_limit_used_ratio:max" + matchers
	}
	return "clamp_max(max without (limit) (tcpdiag_listener_limit_used_ratio" + matchers + "), 1)"
}

// connections are those that the server has accepted: a series a listener where rules have the sum of
// its phases.
func (q questions) connections(m string) string {
	if q.rules {
		return fmt.Sprintf("listener:tcpdiag_clients_inside:sum%s - tcpdiag_listener_accept_queue_length%s", m, m)
	}
	return fmt.Sprintf("sum without (phase) (tcpdiag_listener_connections%s) + (tcpdiag_listener_reset_connections%s or 0 * tcpdiag_listener_accept_queue_length%s)", m, m, m)
}

func (q questions) counts() string {
	return fmt.Sprintf(`count_values("status", %s)`, q.status())
}

// agents are those that are scraped.
func (q questions) agents() string { return "count(tcpdiag_build_info" + q.of.agents() + ")" }

// missing are those that were scraped within the hour, and cannot be now.
func (q questions) missing() string {
	return fmt.Sprintf("count(up%s == 0 and on (cluster, job, instance) last_over_time(tcpdiag_build_info%s[1h]))", q.of.agents(), q.of.agents())
}

// maxAlternatives is how many are named in a question; more are asked for by all.
const maxAlternatives = 200

// of are matchers of the rows' series: an agent of a node has those of all its pods.
func (s Selection) of(rows []*row) string {
	instances, spaces := alternatives(rows, func(r *row) string { return r.key.instance }), alternatives(rows, func(r *row) string { return r.key.netns })
	switch {
	case instances == "":
		return s.agents()
	case spaces == "":
		return s.agents("instance=~" + strconv.Quote(instances))
	}
	return s.agents("instance=~"+strconv.Quote(instances), "netns=~"+strconv.Quote(spaces))
}

// alternatives match one label of the rows, "" where they are too many.
func alternatives(rows []*row, label func(*row) string) string {
	seen := make(map[string]bool)
	var names []string
	for _, r := range rows {
		if v := label(r); !seen[v] {
			seen[v] = true
			names = append(names, regexp.QuoteMeta(v))
		}
	}
	if len(names) > maxAlternatives {
		return ""
	}
	return strings.Join(names, "|")
}

// more adds a matcher to those of a selector.
func more(matchers, one string) string {
	return strings.TrimSuffix(matchers, "}") + map[bool]string{true: ",", false: ""}[matchers != "{}"] + one + "}"
}

var errAt = errors.New("give a time of the day (03:12), a time before now (-2h), or one of RFC 3339 (2026-05-04T03:12:00Z)")

// ParseAt is a moment of the past: a time of the day is the last that there was, today's
// or yesterday's.
func ParseAt(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if clock, err := time.Parse(layout, text); err == nil {
			return lastClock(clock, now), nil
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if span, spanErr := time.ParseDuration(text); err != nil && spanErr == nil && text[0] == '-' {
		at, err = now.Add(span), nil
	}
	switch {
	case err != nil:
		return time.Time{}, errAt
	case at.After(now):
		return time.Time{}, errors.New("this is in the future")
	}
	return at, nil
}

func lastClock(clock, now time.Time) time.Time {
	y, m, d := now.Date()
	at := time.Date(y, m, d, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	if at.After(now) {
		at = time.Date(y, m, d-1, clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	return at
}
