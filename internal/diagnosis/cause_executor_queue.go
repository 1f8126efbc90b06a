package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

func (j *judge) executorSteps(v model.Verdict) (do []model.Step, not string) {
	n, _ := boundedQueue(j.Now)
	do = j.threadSteps(v)
	do = append(do, maxQueueSetting().change(j, j.Now.Connector.MaxQueue, "If rejecting is not what it is for, make the executor's queue longer: requests then wait longer", n, max(spare(2*n), 10)))
	return do, "acceptCount or maxConnections: they have no part in it."
}
