package threaddump

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestScheduler(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       *model.VirtualScheduler
	}{
		{"all carriers taken (Temurin 25)", "5065:\njava.util.concurrent.ForkJoinPool@6d315cd6[Running, parallelism = 2, size = 2, active = 2, running = 0, steals = 2, tasks = 3, submissions = 15]\n", &model.VirtualScheduler{Parallelism: 2, Carriers: 2, Mounted: 2, Queued: 18}},
		{"all wait (Temurin 25)", "java.util.concurrent.ForkJoinPool@70177b6e[Running, parallelism = 2, size = 2, active = 0, running = 0, steals = 20, tasks = 0, submissions = 0, delayed = 20]\n", &model.VirtualScheduler{Parallelism: 2, Carriers: 2}},
		{"JDK 21 knows no such command", "java.lang.IllegalArgumentException: Unknown diagnostic command\n", nil},
		{"a number that is none", "java.util.concurrent.ForkJoinPool@1[Running, parallelism = -1, size = 2, active = 2, tasks = 0, submissions = 0]\n", nil},
		{"nothing", "", nil},
		{"endless", strings.Repeat("x", 1<<20), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseScheduler(bufio.NewReader(strings.NewReader(tt.text)))
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want == nil, err != nil)
		})
	}
}
