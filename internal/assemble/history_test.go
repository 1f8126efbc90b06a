package assemble

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What is remembered of a listener does not keep the snapshot that it was in: with listeners that come at
// different times each would keep another one.
func TestMomentsKeepNoSnapshot(t *testing.T) {
	var l moments
	now := time.Unix(1000, 0)
	var snapshots []weak.Pointer[model.Listener]
	for i := range 4 {
		list := make([]model.Listener, 100)
		list[99].Port = uint16(i)
		snapshots = append(snapshots, weak.Make(&list[0]))
		l.push(newMoment(now.Add(time.Duration(i)*anchorAge), &list[99]), time.Second)
	}
	runtime.GC()
	for _, s := range snapshots {
		require.Nil(t, s.Value())
	}
	require.EqualValues(t, 3, l.last.Port)
	require.EqualValues(t, 2, l.trend().Port)
	runtime.KeepAlive(&l)
}
