package render

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

type processJSON struct {
	PID              int      `json:"pid"`
	Comm             string   `json:"comm,omitempty"`
	OpenFiles        *int     `json:"open_files,omitempty"`
	OpenFilesLimit   *int     `json:"open_files_limit,omitempty"`
	Threads          *int     `json:"threads,omitempty"`
	Stopped          bool     `json:"stopped,omitempty"`
	Container        string   `json:"container,omitempty"`
	PodUID           string   `json:"pod_uid,omitempty"`
	MemoryLimitBytes *uint64  `json:"memory_limit_bytes,omitempty"`
	PIDsLimit        *int     `json:"pids_limit,omitempty"`
	SafepointSeconds *float64 `json:"safepoint_seconds,omitempty"` // this and the next three: since the process started
	GCSeconds        *float64 `json:"gc_seconds,omitempty"`
	ThrottledSeconds *float64 `json:"cpu_throttled_seconds,omitempty"`
	RunDelaySeconds  *float64 `json:"run_delay_seconds,omitempty"`

	Busiest *destinationJSON `json:"busiest_destination,omitempty"`
}

// destinationJSON is the peer that takes most of the process's local ports.
type destinationJSON struct {
	Address string `json:"address"`
	Ports   int    `json:"ports"`
}

type connectorJSON struct {
	Server               string                `json:"server,omitempty"`
	Framework            string                `json:"framework,omitempty"`
	Version              string                `json:"version,omitempty"`
	FrameworkVersion     string                `json:"framework_version,omitempty"`
	Protocol             string                `json:"protocol,omitempty"`
	TLS                  bool                  `json:"tls,omitempty"`
	HTTP2                bool                  `json:"http2,omitempty"`
	Executor             string                `json:"executor,omitempty"`
	MaxConnections       *settingJSON[int]     `json:"max_connections,omitempty"`
	AcceptCount          *settingJSON[int]     `json:"accept_count,omitempty"`
	MaxThreads           *settingJSON[int]     `json:"max_threads,omitempty"`
	MinSpareThreads      *settingJSON[int]     `json:"min_spare_threads,omitempty"`
	MaxQueue             *settingJSON[int]     `json:"max_queue,omitempty"`
	MaxKeepAliveRequests *settingJSON[int]     `json:"max_keep_alive_requests,omitempty"`
	ConnectionTimeout    *settingJSON[float64] `json:"connection_timeout_seconds,omitempty"`
	KeepAliveTimeout     *settingJSON[float64] `json:"keep_alive_timeout_seconds,omitempty"`
	VirtualThreads       *settingJSON[bool]    `json:"virtual_threads,omitempty"`
	PoolThreads          *int                  `json:"pool_threads,omitempty"`
	BusyThreads          *int                  `json:"busy_threads,omitempty"`
	CurrentConnections   *int                  `json:"current_connections,omitempty"`
}

type settingJSON[T any] struct {
	Value  T      `json:"value"`
	Source string `json:"source"`
	Note   string `json:"note,omitempty"`
}

func newProcessJSON(p *model.Process) *processJSON {
	if p == nil {
		return nil
	}
	return &processJSON{
		PID:              p.PID,
		Comm:             p.Comm,
		OpenFiles:        p.OpenFiles,
		OpenFilesLimit:   p.OpenFilesLimit,
		Threads:          p.Threads,
		Stopped:          p.Stopped,
		Container:        p.Container,
		PodUID:           p.PodUID,
		MemoryLimitBytes: p.MemoryLimit,
		PIDsLimit:        p.PIDsLimit,
		SafepointSeconds: seconds(p.SafepointTime),
		GCSeconds:        seconds(p.GCTime),
		ThrottledSeconds: seconds(p.CPUThrottled),
		RunDelaySeconds:  seconds(p.RunDelay),
		Busiest:          newDestinationJSON(p.Busiest),
	}
}

func newDestinationJSON(d *model.Destination) *destinationJSON {
	if d == nil {
		return nil
	}
	return &destinationJSON{Address: d.Address.String(), Ports: d.Ports}
}

func newConnectorJSON(c *model.Connector) *connectorJSON {
	if c == nil {
		return nil
	}
	return &connectorJSON{
		Server:               c.Server,
		Framework:            c.Framework,
		Version:              c.Version,
		FrameworkVersion:     c.FrameworkVersion,
		Protocol:             c.Protocol,
		TLS:                  c.TLS,
		HTTP2:                c.HTTP2,
		Executor:             c.Executor,
		MaxConnections:       newSettingJSON(c.MaxConnections),
		AcceptCount:          newSettingJSON(c.AcceptCount),
		MaxThreads:           newSettingJSON(c.MaxThreads),
		MinSpareThreads:      newSettingJSON(c.MinSpareThreads),
		MaxQueue:             newSettingJSON(c.MaxQueue),
		MaxKeepAliveRequests: newSettingJSON(c.MaxKeepAliveRequests),
		ConnectionTimeout:    newDurationJSON(c.ConnectionTimeout),
		KeepAliveTimeout:     newDurationJSON(c.KeepAliveTimeout),
		VirtualThreads:       newSettingJSON(c.VirtualThreads),
		PoolThreads:          c.PoolThreads,
		BusyThreads:          c.BusyThreads,
		CurrentConnections:   c.CurrentConnections,
	}
}

func newSettingJSON[T any](s *model.Setting[T]) *settingJSON[T] {
	if s == nil {
		return nil
	}
	return &settingJSON[T]{Value: s.Value, Source: settingSource(s), Note: s.Note}
}

// newDurationJSON keeps the sign: Tomcat reads a negative timeout as none.
func newDurationJSON(s *model.Setting[time.Duration]) *settingJSON[float64] {
	if s == nil {
		return nil
	}
	return &settingJSON[float64]{Value: s.Value.Seconds(), Source: settingSource(s), Note: s.Note}
}

// settingSource is where a value was found, in words; its kind when nobody
// has written any.
func settingSource[T any](s *model.Setting[T]) string {
	if s.Source != "" {
		return s.Source
	}
	return string(s.Kind)
}
