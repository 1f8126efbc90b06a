package render_test

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// stacks is a server whose JVM said what its threads do.
func stacks() *model.Snapshot {
	s := saturated()
	l := &s.Listeners[0]
	p := *l.Process
	p.Stacks = &model.Stacks{
		At: s.Time, Took: 12 * time.Millisecond, Threads: 30, Workers: 20, Others: 2, Deadlocked: true,
		Groups: []model.StackGroup{
			{
				Threads: 16, Worker: true, State: "TIMED_WAITING",
				Library: "com.zaxxer.hikari.HikariDataSource.getConnection", Application: "com.acme.OrderService.find",
				Frames: []string{"jdk.internal.misc.Unsafe.park", "com.zaxxer.hikari.HikariDataSource.getConnection", "com.acme.OrderService.find"},
			},
			{Threads: 2, Worker: true, State: "RUNNABLE", Library: "com.acme.\x1b[31mReport.draw", Application: "com.acme.\x1b[31mReport.draw", Frames: []string{}},
			{Threads: 2, Worker: true, Idle: true, State: "WAITING", Library: "org.apache.tomcat.util.threads.TaskQueue.take", Frames: []string{}},
			{Threads: 8, State: "WAITING", Library: "java.lang.Object.wait", Frames: []string{}},
		},
	}
	l.Process = &p
	return s
}
