package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

func (j *judge) closedSteps() (do []model.Step, not string) {
	if j.Closed != nil && j.Closed.Part {
		return []model.Step{{
			Text: "Have the kernel move whoever waits to the other sockets (Linux 5.14)", Command: "sysctl -w net.ipv4.tcp_migrate_req=1",
			Setting: "net.ipv4.tcp_migrate_req", From: "0", To: "1",
		}}, ""
	}
	return []model.Step{
		action("Before a stop, take the instance out of the load balancer"),
		action("Wait until no new connections come (in Kubernetes a preStop hook that sleeps 10 s), and only then stop it"),
	}, "A graceful shutdown alone: it closes the listener at once, and with it whatever waits in its queue."
}
