package catalina

import "time"

// NoLimit is the value of a limit that is switched off.
const NoLimit = -1

// feature is a change of behaviour and the first version of each line of
// releases that has it.
type feature []Version

// The versions were found in Tomcat's history (git tag --contains of the
// commit named with each).
func eightThousandConnections() feature { // 34a4b06dc0, 01f2cf25b2 (BZ 65408)
	return feature{{8, 5, 76, 0}, {9, 0, 30, 0}, {10, 0, 0, 1}}
}

func noLimitWithNIO2() feature { // e22cc3f76e (BZ 58103): Nio2Endpoint switches maxConnections off
	return feature{{8, 5, 0, 0}, {9, 0, 0, 1}}
}

func limitWithNIO2() feature { // c5bf32a63d, 01f2cf25b2: and on again
	return feature{{8, 5, 76, 0}, {9, 0, 18, 0}}
}

func oneName() feature { // 48a4391c5b, f60da9b2a4: neither backlog nor soTimeout any more
	return feature{{9, 0, 0, 12}}
}

func connectorQueueSize() feature { // 204f0fe75d: maxQueueSize of a Connector
	return feature{{9, 0, 90, 0}, {10, 1, 25, 0}, {11, 0, 0, 21}}
}

func virtualThreads() feature { // c382352b35: useVirtualThreads, StandardVirtualThreadExecutor
	return feature{{8, 5, 90, 0}, {9, 0, 76, 0}, {10, 1, 10, 0}, {11, 0, 0, 7}}
}

func portOffsets() feature { // 492a6dfb58 (BZ 61171): portOffset of Server
	return feature{{8, 5, 76, 0}, {9, 0, 13, 0}}
}

func substitutionDefaults() feature { // 90b8ff2f33 (BZ 64398): ${name:-default}
	return feature{{7, 0, 104, 0}, {8, 5, 55, 0}, {9, 0, 35, 0}, {10, 0, 0, 5}}
}

func nestedSubstitution() feature { // e7896ee44a: ${a:-${b}}
	return feature{{10, 0, 0, 8}}
}

func onePoller() feature { // e813ae0d93, 6b3a521ff8: pollerThreadCount was removed
	return feature{{8, 5, 76, 0}, {9, 0, 21, 0}, {10, 0, 0, 1}}
}

func noAsyncTimeoutThread() feature { // da628f708b: a scheduled executor instead
	return feature{{9, 0, 14, 0}}
}

func noBlockPoller() feature { // 135c080c08, 500b2a4114
	return feature{{9, 0, 47, 0}, {10, 0, 0, 1}}
}

func ajpOnLoopback() feature { // aba0c9a488: AJP binds to the loopback address
	return feature{{7, 0, 100, 0}, {8, 5, 51, 0}, {9, 0, 31, 0}, {10, 0, 0, 1}}
}

// Limits are the limits of a connector those that have defaults.
type Limits struct {
	MaxConnections       int // NoLimit: none
	AcceptCount          int
	MaxThreads           int
	MinSpareThreads      int
	MaxKeepAliveRequests int
	ConnectionTimeout    time.Duration // negative: none
}

// Defaults are a connector's limits when nothing is configured; endpoint is the
// middle of its thread names: "nio", "nio2", "apr" or "bio", scheme the
// beginning: "http" or "ajp".
func Defaults(v Version, scheme, endpoint string) Limits {
	l := Limits{
		MaxConnections:       8 * 1024, // AbstractEndpoint.maxConnections
		AcceptCount:          100,      // AbstractEndpoint.acceptCount
		MaxThreads:           200,      // AbstractEndpoint.maxThreads
		MinSpareThreads:      10,       // AbstractEndpoint.minSpareThreads
		MaxKeepAliveRequests: 100,      // AbstractEndpoint.maxKeepAliveRequests
		// coyote.http11.Constants.DEFAULT_CONNECTION_TIMEOUT. The 20 s of
		// most servers come from the server.xml they are shipped with.
		ConnectionTimeout: time.Minute,
	}
	switch {
	case endpoint == "bio": // JIoEndpoint: a thread for each connection
		l.MaxConnections = l.MaxThreads
	case endpoint == "nio2" && v.has(noLimitWithNIO2()...) && !v.has(limitWithNIO2()...):
		l.MaxConnections = NoLimit
	case endpoint != "apr" && !v.has(eightThousandConnections()...):
		l.MaxConnections = 10_000
	}
	if scheme == "ajp" { // coyote.ajp.Constants.DEFAULT_CONNECTION_TIMEOUT
		l.ConnectionTimeout = -time.Millisecond
	}
	return l
}

// ExecutorDefaults are the limits of a shared StandardThreadExecutor.
func ExecutorDefaults() (maxThreads, minSpareThreads int) { return 200, 25 }

// Housekeeping is the number of threads named after a connector that are not
// workers, on a machine with the given number of CPUs.
func Housekeeping(v Version, endpoint string, cpus int) int {
	if endpoint == "bio" {
		return 2 // acceptor, AsyncTimeout
	}
	n := 0
	if !v.has(noAsyncTimeoutThread()...) {
		n++
	}
	if endpoint == "nio2" {
		return n
	}
	n += 2 // acceptor, poller
	if endpoint == "nio" && !v.has(onePoller()...) {
		n += min(2, cpus) - 1
	}
	if endpoint == "nio" && v.has(Version{9, 0, 20, 0}) && !v.has(noBlockPoller()...) {
		n++
	}
	return n
}
