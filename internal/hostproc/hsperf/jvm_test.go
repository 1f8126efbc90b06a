package hsperf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVirtualMachine(t *testing.T) {
	const hotspot = "7f00-7f01 r-xp 00000000 fe:00 1 /usr/lib/jvm/java-17/lib/server/libjvm.so\n"
	for maps, want := range map[string]VirtualMachine{
		"": NoVirtualMachine, hotspot: HotSpot,
		hotspot + "7f02-7f03 r-xp 00000000 fe:00 1 /opt/java/lib/default/libj9vm29.so\n": OpenJ9,
		"7f00-7f01 rw-p 00000000 00:00 0 \n":                                             NoVirtualMachine,
		"7f00-7f01 r-xp 00000000 fe:00 1 /libjvm.so.backup\n":                            NoVirtualMachine,
		"7f00-7f01 r-xp 00000000 fe:00 1 /srv/libjvm.so/native\n":                        NoVirtualMachine,
	} {
		got, err := virtualMachine(strings.NewReader(maps))
		require.NoError(t, err)
		require.Equal(t, want, got, maps)
	}
}
