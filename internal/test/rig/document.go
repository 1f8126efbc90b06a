package rig

import "time"

// Document is the snapshot as its readers see it, written down apart from the
// code that writes it: a renamed or missing field is found here. What may be
// unknown is a pointer.
type Document struct {
	Schema          string     `json:"schema"`
	Time            time.Time  `json:"time"`
	IntervalSeconds float64    `json:"interval_seconds"`
	ScanAgeSeconds  *float64   `json:"scan_age_seconds"`
	Listeners       []Listener `json:"listeners"`
	NetNS           []struct {
		ID       uint64         `json:"id"`
		Counters map[string]int `json:"counters"`
		Delta    map[string]int `json:"delta"`
		Sysctl   map[string]int `json:"sysctl"`
	} `json:"netns"`
	Notes       []string `json:"notes"`
	Unavailable []struct {
		What string `json:"what"`
		Why  string `json:"why"`
		How  string `json:"how"`
	} `json:"unavailable"`
}

// Listener is one entry of the document.
type Listener struct {
	Address     string       `json:"address"`
	Port        int          `json:"port"`
	Inode       uint32       `json:"inode"`
	NetNS       uint64       `json:"netns"`
	Process     *Process     `json:"process"`
	Connector   *Connector   `json:"connector"`
	SynBacklog  *SynBacklog  `json:"syn_backlog"`
	AcceptQueue *AcceptQueue `json:"accept_queue"`
	Connections *Connections `json:"connections"`
	Clients     *Followed    `json:"clients"`
	Capacity    *int         `json:"capacity"`
	Limits      []Limit      `json:"limits"`
	Losses      *Losses      `json:"losses"`
	Verdict     Verdict      `json:"verdict"`
}

// Followed is for how long its clients are counted, nil where handshakes are not followed.
type Followed struct {
	ObservedSeconds float64 `json:"observed_seconds"`
}

// Process owns a listener.
type Process struct {
	PID            int    `json:"pid"`
	Comm           string `json:"comm"`
	OpenFiles      *int   `json:"open_files"`
	OpenFilesLimit *int   `json:"open_files_limit"`
	Threads        *int   `json:"threads"`

	SafepointSeconds *float64 `json:"safepoint_seconds"`
}

// Setting is a limit and where it was found.
type Setting struct {
	Value  int    `json:"value"`
	Source string `json:"source"`
	Note   string `json:"note"`
}

// Connector is Tomcat's end of a listener.
type Connector struct {
	Server         string   `json:"server"`
	Framework      string   `json:"framework"`
	Protocol       string   `json:"protocol"`
	TLS            bool     `json:"tls"`
	MaxConnections *Setting `json:"max_connections"`
	AcceptCount    *Setting `json:"accept_count"`
	MaxThreads     *Setting `json:"max_threads"`
	PoolThreads    *int     `json:"pool_threads"`
	Executor       string   `json:"executor"`
	VirtualThreads *struct {
		Value bool `json:"value"`
	} `json:"virtual_threads"`
}

// SynBacklog holds half-open connections.
type SynBacklog struct {
	Length int `json:"length"`
	Limit  int `json:"limit"`
}

// AcceptQueue holds connections that nobody has accepted.
type AcceptQueue struct {
	Length            int      `json:"length"`
	Limit             int      `json:"limit"`
	Capacity          int      `json:"capacity"`
	Full              bool     `json:"full"`
	Peak              *int     `json:"peak"`
	OldestWaitSeconds *float64 `json:"oldest_wait_seconds"`
	SocketDrops       *int     `json:"socket_drops"`
}

// Connections are the accepted ones by phase.
type Connections struct {
	AgeSeconds   float64        `json:"age_seconds"` // since they were read, the oldest wait in the queue as well
	Accepted     int            `json:"accepted"`
	Waiting      int            `json:"waiting"`
	InService    int            `json:"in_service"`
	Sending      int            `json:"sending"`
	Idle         int            `json:"idle"`
	ClientClosed int            `json:"client_closed"`
	Streaming    int            `json:"streaming"`
	Unclassified int            `json:"unclassified"`
	Reset        *int           `json:"reset"`
	Silent       int            `json:"silent"`
	States       map[string]int `json:"states"`
}

// Sum is that of the phases.
func (c *Connections) Sum() int {
	return c.Waiting + c.InService + c.Sending + c.Idle + c.ClientClosed + c.Streaming + c.Unclassified
}

// Limit is how full a stage is.
type Limit struct {
	Name  string  `json:"name"`
	Used  int     `json:"used"`
	Max   int     `json:"max"`
	Ratio float64 `json:"ratio"`
}

// Losses are those of the interval.
type Losses struct {
	DroppedPackets    int      `json:"dropped_packets"`
	By                []Drops  `json:"by"`
	Unattributed      int      `json:"unattributed"`
	AbandonedRequests int      `json:"abandoned_requests"`
	QueueResets       int      `json:"queue_resets"`
	WorstCase         []string `json:"worst_case"`
}

// Drops are packets by cause.
type Drops struct {
	Cause     string `json:"cause"`
	Packet    string `json:"packet"`
	Packets   int    `json:"packets"`
	Estimated bool   `json:"estimated"`
}

// Verdict is how the listener stands.
type Verdict struct {
	Status   string   `json:"status"`
	Cause    string   `json:"cause"`
	Chain    []string `json:"chain"`
	Summary  string   `json:"summary"`
	Findings []struct {
		Code     string `json:"code"`
		Severity string `json:"severity"`
		Evidence string `json:"evidence"`
		Advice   string `json:"advice"`
	} `json:"findings"`
	Answer struct {
		What string `json:"what"`
		Why  string `json:"why"`
		Do   []Step `json:"do"`
		Not  string `json:"not"`
	} `json:"answer"`
}

// Step is one thing to do.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command"`
	Setting string `json:"setting"`
	From    string `json:"from"`
	To      string `json:"to"`
	Effect  string `json:"effect"`
}

// On is the entry of a port, nil when there is none.
func (d *Document) On(port int) *Listener {
	for i := range d.Listeners {
		if d.Listeners[i].Port == port {
			return &d.Listeners[i]
		}
	}
	return nil
}
