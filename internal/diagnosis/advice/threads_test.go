package advice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLeftInLine(t *testing.T) {
	for want, n := range map[string][2]int{
		"the client of the one request that waits has given up, and it is served all the same":            {1, 1},
		"the client of 1 of the 16 requests that wait has given up, and it is served all the same":        {1, 16},
		"the clients of 13 of the 16 requests that wait have given up, and these are served all the same": {13, 16},
		"the clients of all 16 requests that wait have given up, and these are served all the same":       {16, 16},
	} {
		require.Equal(t, want, LeftInLine(n[0], n[1]))
	}
}
