package diagnosis

import (
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// action is a step that only finds something out, or is done elsewhere.
func action(text string) model.Step { return model.Step{Text: text} }

// command is a step that is one line to copy.
func command(text, line string) model.Step { return model.Step{Text: text, Command: line} }

// limit is the name of the stage that a setting limits, for Step.Limit.
func (s setting) limit() string {
	switch s.tomcat {
	case "maxThreads":
		return reading.StageMaxThreads
	case "maxConnections":
		return reading.StageMaxConnections
	case "acceptCount":
		return reading.StageAcceptQueue
	}
	return ""
}

// change is a step that gives one of Tomcat's limits another value. Where several
// processes share the port the numbers are each one's.
func (s setting) change(j *judge, in *model.Setting[int], text string, from, to int) model.Step {
	if n := j.Now.Connector.Processes; n > 1 && s.tomcat != "acceptCount" {
		from, to = from/n, (to+n-1)/n
		text += phrase.Sprintf(" in each of the %d processes that share the port", n)
	}
	return model.Step{Text: text, Setting: s.name(j.Now), File: foundIn(in), From: strconv.Itoa(from), To: strconv.Itoa(to), Limit: s.limit()}
}

// changeTime is the same for a timeout.
func (s setting) changeTime(j *judge, in *model.Setting[time.Duration], text string, to time.Duration) model.Step {
	step := model.Step{Text: text, Setting: s.name(j.Now), File: foundIn(in), To: phrase.Seconds(to)}
	switch {
	case in == nil:
	case in.Value <= 0:
		step.From = "never"
	default:
		step.From = phrase.Seconds(in.Value)
	}
	return step
}

// foundIn is where a value is to be changed: nowhere yet if it is a default, and not where
// tcpdiag was told of it.
func foundIn[T any](s *model.Setting[T]) string {
	if s == nil {
		return ""
	}
	switch s.Kind {
	case model.SourceFile, model.SourceEnv, model.SourceArgument, model.SourceProperty:
		return s.Source
	}
	return ""
}

// dumpStep asks the JVM what its threads wait for, as its user.
func (j *judge) dumpStep(text string) model.Step {
	p := j.Now.Process
	if p == nil || p.PID == 0 {
		return action(text + " (jstack)")
	}
	return command(text, phrase.Sprintf(`sudo -u "$(ps -o user= -p %[1]v)" tcpdiag snapshot --pid %[1]v --thread-dump`, p.PID))
}

// backlogSteps make the accept queue longer: acceptCount, and net.core.somaxconn above
// it, both of which listen() takes once.
func (j *judge) backlogSteps(to int) (out []model.Step) {
	most, known := j.Sysctl["somaxconn"]
	if !known || most < to {
		out = append(out, j.somaxconnStep(to))
	}
	if n, ok := reading.AcceptCount(j.Now); ok && n >= to {
		return append(out, action("Restart the server: listen() takes the backlog once"))
	}
	const text = "Make the accept queue longer, and restart: listen() takes it once"
	if !reading.IsTomcat(j.Now) || j.Now.AcceptQueue == nil {
		return append(out, model.Step{Text: text, Setting: reading.ServerName(j.Now) + "'s listen backlog", To: strconv.Itoa(to), Limit: reading.StageAcceptQueue})
	}
	return append(out, acceptCountSetting().change(j, j.Now.Connector.AcceptCount, text, j.Now.AcceptQueue.Limit, to))
}

func (j *judge) somaxconnStep(to int) model.Step {
	s := model.Step{
		Text:    "Raise what the kernel allows, in the server's network namespace (in Kubernetes: securityContext.sysctls)",
		Setting: "net.core.somaxconn", To: strconv.Itoa(to), Command: phrase.Sprintf("sysctl -w net.core.somaxconn=%v", to),
	}
	if most, known := j.Sysctl["somaxconn"]; known {
		s.From = strconv.Itoa(most)
	}
	return s
}

// filesStep is there where the open-files limit must be raised for that many connections.
func (j *judge) filesStep(connections int) []model.Step {
	_, most, ok := reading.OpenFiles(j.Now)
	if _, seen := reading.Held(j.Now); !ok || !seen {
		return nil
	}
	need := filesNeeded(j.Now, connections)
	if need <= most {
		return nil
	}
	return []model.Step{raiseFilesStep(most, need)}
}

func raiseFilesStep(most, to int) model.Step {
	return model.Step{
		Text:    "Raise the open-files limit (LimitNOFILE= of the unit, the container's ulimits, or ulimit -n), and restart",
		Setting: "LimitNOFILE", From: strconv.Itoa(most), To: strconv.Itoa(to),
	}
}
