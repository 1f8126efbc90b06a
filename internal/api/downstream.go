package api

import "github.com/tcpdiag/tcpdiag/internal/model"

// Peer is what a process has outgoing connections to. The numbers count
// connections, and no requests where several share one (HTTP/2, pipelining).
type Peer struct {
	Peer                   string   `json:"peer"`                      // address and port, or "other": all that are not listed
	Name                   string   `json:"name,omitempty"`            // the configuration's: the database, "redis"
	MatchedByPort          bool     `json:"matched_by_port,omitempty"` // name and pool: only the port speaks for them
	Connections            int      `json:"connections"`
	InFlight               int      `json:"in_flight"`            // something was sent, and nothing has come back since
	Unknown                int      `json:"unknown,omitempty"`    // may be in flight
	Connecting             int      `json:"connecting,omitempty"` // nobody has answered the SYN
	OldestInFlightSeconds  *float64 `json:"oldest_in_flight_seconds,omitempty"`
	OldestConnectSeconds   *float64 `json:"oldest_connecting_seconds,omitempty"` // a lower bound
	MeanInFlightSeconds    *float64 `json:"mean_in_flight_seconds,omitempty"`
	AllInFlightRatio       *float64 `json:"all_in_flight_ratio,omitempty"`       // of the readings of the last minute
	RequestsPerSecond      *float64 `json:"requests_per_second,omitempty"`       // begun: a lower bound
	InFlightAtRest         *int     `json:"in_flight_at_rest,omitempty"`         // while no client is served: subscriptions, long polls
	Workers                *int     `json:"workers,omitempty"`                   // threads of the connector that are in a call that waits for it
	PoolSize               *int     `json:"pool_size,omitempty"`                 // the configured bound on connections
	PoolSetting            string   `json:"pool_setting,omitempty"`              // the property that sets it
	PoolSource             string   `json:"pool_source,omitempty"`               // where its value was found
	ConnectionsMayBeOthers bool     `json:"connections_may_be_others,omitempty"` // known by their user only
}

func newPeers(d *model.Downstream) []Peer {
	if d == nil {
		return nil
	}
	out := make([]Peer, 0, len(d.Peers)+1)
	for i := range d.Peers {
		out = append(out, newPeer(d, &d.Peers[i], d.Peers[i].Address.String()))
	}
	if d.Others != nil {
		out = append(out, newPeer(d, d.Others, "other"))
	}
	return out
}

func newPeer(d *model.Downstream, p *model.Peer, address string) Peer {
	out := Peer{
		Peer: address, Name: p.Name, MatchedByPort: p.ByPort, Connections: p.Connections, InFlight: p.InFlight, Unknown: p.Unknown,
		Connecting: p.Connecting, AllInFlightRatio: p.AllInFlight, RequestsPerSecond: p.PerSecond,
		InFlightAtRest: p.Background, Workers: p.Workers, ConnectionsMayBeOthers: d.ByUser,
	}
	if p.InFlight > 0 {
		out.OldestInFlightSeconds = seconds(&p.Oldest)
		if p.Mean > 0 {
			out.MeanInFlightSeconds = seconds(&p.Mean)
		}
	}
	if p.Connecting > 0 {
		out.OldestConnectSeconds = seconds(&p.OldestConnect)
	}
	if pool := p.Pool; pool != nil {
		out.PoolSize, out.PoolSetting, out.PoolSource = &pool.Size.Value, pool.Setting, pool.Size.Origin()
	}
	return out
}
