package ask

import (
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
)

// sharedFor is how long an agent's answer serves others: an agent makes one a second.
const sharedFor = 500 * time.Millisecond

// answers are those that agents have just given.
type answers struct {
	mu    sync.Mutex
	given map[kube.Agent]*answer
}

// answer is an agent's latest, or why there is none.
type answer struct {
	mu   sync.Mutex
	at   time.Time
	body []byte
	err  error
}

// of is an agent's answer, which is asked for where the latest is too old. Who comes meanwhile
// waits for it.
func (s *answers) of(agent kube.Agent, ask func(kube.Agent) ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	one := s.given[agent]
	if one == nil {
		one = new(answer)
		s.given[agent] = one
	}
	s.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if time.Since(one.at) > sharedFor {
		one.body, one.err = ask(agent)
		one.at = time.Now()
	}
	return one.body, one.err
}
