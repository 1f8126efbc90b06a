package reading

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// ServerName is what the process is called in a sentence.
func ServerName(l *model.Listener) string {
	if IsTomcat(l) {
		return "Tomcat"
	}
	if l.Process != nil && l.Process.Comm != "" && l.Process.Comm != "java" {
		return l.Process.Comm
	}
	return "the server"
}

// IsTomcat is also true when somebody gave one of Tomcat's limits by hand.
func IsTomcat(l *model.Listener) bool { return l.Connector.IsTomcat() }

// OtherJVM means that it is a JVM in which no Tomcat was recognised.
func OtherJVM(l *model.Listener) bool { return !IsTomcat(l) && l.Connector.Kind().JVM }

// SpeaksHTTP means that the rules of requests and answers hold on its connections. AJP's ends ping one
// another, and of other protocols the server speaks first.
func SpeaksHTTP(l *model.Listener) bool {
	return l != nil && l.Connector != nil && !strings.HasPrefix(l.Connector.Protocol, "ajp")
}

// OpenFiles is how many files the process has open, and how many it may: a limit lowered later than
// they were opened has none left, as one that is reached.
func OpenFiles(l *model.Listener) (used, most int, ok bool) {
	if l == nil || l.Process == nil || l.Process.OpenFiles == nil || l.Process.OpenFilesLimit == nil {
		return 0, 0, false
	}
	most = *l.Process.OpenFilesLimit
	return min(*l.Process.OpenFiles, most), most, most > 0
}

// DownstreamOf is what is known of the process's outgoing connections, nil where that is nothing or old.
func DownstreamOf(l *model.Listener) *model.Downstream {
	if l == nil || l.Process == nil || l.Process.Downstream == nil || l.Process.Downstream.Age > freshWait {
		return nil
	}
	return l.Process.Downstream
}

// freshWait is how old a reading of the outgoing connections may be.
const freshWait = 15 * time.Second
