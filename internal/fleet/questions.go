package fleet

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	tcpdiag "github.com/tcpdiag/tcpdiag/internal/model"
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
	away := "listener:tcpdiag_clients_turned_away:trouble3m" + q.of.matchers() // of those that have turned any away
	bad := "listener:tcpdiag_trouble:max" + q.of.matchers()
	if !q.rules {
		away = q.turnedAway(q.of.agents())
		bad = fmt.Sprintf("(%s) > 0 or (%s) and %s (%s) >= 1", q.status(), q.status(), same, away)
	}
	return fmt.Sprintf("topk(%d, 1e6 * (%s) + %s group_left () clamp_max(%s, 999999) or 1e6 * (%s))", limit, bad, same, away, bad)
}

// calm are the fullest of those that are ok, as many as are asked for where the limit has room for all that
// are not. The value is how full they are, without the rules.
func (q questions) calm(limit int) string {
	ok := "((" + q.status() + ") == 0)"
	if !q.rules {
		return fmt.Sprintf("topk(%d, %s + %s group_left () clamp_max(%s, 1) or %s)", limit, ok, same, q.fullest(q.of.agents()), ok)
	}
	fullest := q.fullest(q.of.agents())
	if q.of.Namespace != "" { // an agent of a node has no namespace
		fullest += " and " + same + " " + ok
	}
	return fmt.Sprintf("topk(%d, 1 + (%s and %s topk(%d, %s)) or %s)", limit, ok, same, limit, fullest, ok)
}

// fullest is how full the fullest limit is.
func (q questions) fullest(matchers string) string {
	if q.rules {
		return "listener:tcpdiag_limit_used_ratio:max" + matchers
	}
	return "tcpdiag_listener_fullest_limit_ratio" + matchers
}

// counts are by status: its name where the rules have counted, else its number.
func (q questions) counts() string {
	if q.rules && q.of.Namespace == "" {
		return "sum by (status) (instance_status:tcpdiag_listeners:count" + q.of.agents() + ")"
	}
	return fmt.Sprintf(`count_values("status", %s)`, q.status())
}

// statusOf is a status by its name, or by its number.
func statusOf(text string) (tcpdiag.Status, bool) {
	for s := range tcpdiag.NumStatuses {
		if text == s.String() || text == strconv.Itoa(int(s)) {
			return s, true
		}
	}
	return 0, false
}

// agents are those that are scraped.
func (q questions) agents() string { return "count(tcpdiag_build_info" + q.of.agents() + ")" }

// missing are those that were scraped within the hour, and cannot be now.
func (q questions) missing() string {
	return fmt.Sprintf("count(up%s == 0 and on (cluster, job, instance) last_over_time(tcpdiag_build_info%s[1h]))", q.of.agents(), q.of.agents())
}

// maxAlternatives is how many are named in a question; more are asked for by all.
const maxAlternatives = 200

// of are matchers of the rows' agents: an agent of a node has the series of all its pods. A second
// matcher, of the namespaces, would cost more than it leaves out: nodes number theirs alike.
func (s Selection) of(rows []*row) string {
	seen := make(map[string]bool)
	var names []string
	for _, r := range rows {
		if !seen[r.key.instance] {
			seen[r.key.instance] = true
			names = append(names, regexp.QuoteMeta(r.key.instance))
		}
	}
	if len(names) > maxAlternatives {
		return s.agents()
	}
	return s.agents("instance=~" + strconv.Quote(strings.Join(names, "|")))
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
