package api

import "time"

// FleetSchema names the JSON document of all listeners of all agents. It only grows.
const FleetSchema = "tcpdiag.fleet/v1"

// Fleet is what a Prometheus has of the listeners of all agents, of schema FleetSchema.
// What is not known is left out, never zero.
type Fleet struct {
	Schema string    `json:"schema"`
	Time   time.Time `json:"time"` // of what is shown
	// FromRules: the recording rules of deploy/prometheus were asked; false: the series
	// of the agents, since there was nothing of the rules.
	FromRules bool   `json:"from_rules"`
	Status    string `json:"status"` // the worst of all that were selected
	// Counts are of all that were selected, by status; no entry is none.
	Counts    map[string]int  `json:"counts"`
	Listeners []FleetListener `json:"listeners"` // the worst first
	Omitted   int             `json:"omitted"`   // beyond the limit
	// Agents that were scraped, and those that were within the last hour and are not.
	Agents           int `json:"agents"`
	AgentsNotScraped int `json:"agents_not_scraped"`
	// Warnings are the server's, such as that its answer is partial.
	Warnings []string `json:"warnings"`
}

// FleetListener is one listener; a port that is expected and has no listener has no
// address.
type FleetListener struct {
	Cluster   string `json:"cluster,omitempty"`
	Job       string `json:"job"`
	Instance  string `json:"instance"`
	Node      string `json:"node,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	// PodUID is there instead of Pod where the pod's name is not known.
	PodUID    string `json:"pod_uid,omitempty"`
	Container string `json:"container,omitempty"`
	Process   string `json:"process,omitempty"`
	NetNS     string `json:"netns"`
	Address   string `json:"address,omitempty"`
	Port      uint16 `json:"port,omitempty"`
	Status    string `json:"status"`
	Cause     string `json:"cause,omitempty"`
	// ClientsTurnedAway and DroppedPackets are of the last 3 minutes.
	ClientsTurnedAway *uint64     `json:"clients_turned_away,omitempty"`
	DroppedPackets    *uint64     `json:"dropped_packets,omitempty"`
	AcceptQueue       *FleetStage `json:"accept_queue,omitempty"`
	Connections       *FleetStage `json:"connections,omitempty"`
	Threads           *FleetStage `json:"threads,omitempty"`
	// FullestRatio is the fullest of its limits; 1 is full.
	FullestRatio *float64 `json:"fullest_ratio,omitempty"`
}

// FleetStage is how much of a stage is taken.
type FleetStage struct {
	Used *int `json:"used,omitempty"`
	Max  *int `json:"max,omitempty"` // absent: not known, or no limit
}
