package clients

import (
	"errors"
	"fmt"
)

// Mode says whether handshakes are followed; it is a flag's value.
type Mode string

// The modes.
const (
	Auto Mode = "auto" // where CAP_NET_RAW allows; elsewhere the snapshot says what is missing
	On   Mode = "on"   // it is an error where they cannot be
	Off  Mode = "off"
)

// ErrUnavailable is why a Follower with Mode On ends.
var ErrUnavailable = errors.New("handshakes cannot be followed")

// Type implements pflag.Value.
func (m *Mode) Type() string { return "mode" }

// String implements pflag.Value.
func (m *Mode) String() string { return string(*m) }

// Set implements pflag.Value.
func (m *Mode) Set(s string) error {
	switch Mode(s) {
	case Auto, On, Off:
		*m = Mode(s)
		return nil
	}
	return fmt.Errorf("give auto, on or off")
}
