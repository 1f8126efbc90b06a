// Package findings has what a reader should know beside the cause: of the clients, the
// stages, the process and the kernel; each with a runbook (books.go).
package findings

import "github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"

// Books are the runbooks of what a verdict says beside its cause.
func Books() []causes.Runbook {
	var out []causes.Runbook
	for _, group := range [][]causes.Runbook{findingsOfClients(), findingsOfStages(), findingsOfProcess(), findingsOfKernel()} {
		out = append(out, group...)
	}
	return out
}

func findingsOfClients() []causes.Runbook {
	return []causes.Runbook{
		{
			Code: "dropped_packets", Title: "packets of clients were dropped",
			Seen:    "Packets that the kernel dropped at this listener, by kind. They are packets, retransmissions included, and no clients.",
			Clients: "A dropped SYN costs a second until it is repeated, or a connect timeout. After a dropped final ACK the client believes it is connected: a read timeout, or a reset.",
			Change:  "What the verdict's cause says.",
		},
		{
			Code: "abandoned_requests", Title: "clients gave up waiting for an answer",
			Seen:    "Requests whose client closed while they waited or were in service. An estimate: scans miss what comes and goes between two of them.",
			Clients: "A read timeout.",
			Change:  "A client timeout above the wait, or fewer requests let in: the server works off what nobody waits for any more.",
		},
		{
			Code: "queue_resets", Title: "queued clients were reset",
			Seen:    "Connections that stood in the accept queue when the listener closed, beside packets that were dropped.",
			Clients: "A reset. Most HTTP clients repeat only idempotent requests by themselves.",
			Change:  "See listener_closed.",
		},
		{
			Code: "unattributed_drops", Title: "packets dropped by listeners that are not watched",
			Seen:   "The network namespace counted more dropped packets than the watched listeners' own counters account for.",
			Change: "`--all` shows the other listeners. What closed meanwhile is shown by nothing.",
		},
		{
			Code: "nobody_tried", Title: "no client has tried to connect",
			Seen:  "The handshakes of the port were followed, and no SYN has come. Connections that are kept open may be served all the same.",
			Check: "Whoever says that it cannot connect: `ss -tn` there (SYN-SENT), the address that it resolves, its route; firewalls and balancers between. In front of a container: the host's rules (`nft list ruleset` there, not here).",
			Vain:  "Any of this server's limits.",
		},
		{
			Code: "clients_kept_out", Title: "a few clients do not get in",
			Seen:    "Clients were refused, or nothing answered their SYNs, though the listener has room, or the server reset them after they had connected: fewer than three, or than one of twenty that came; or fewer than ten, all of one address, while others are connected and nobody new is let in. Of resets by a server whose protocol is not known to be HTTP those that are connected count as well. The status is warning. A scanner of ports is as likely one of these as a client.",
			Clients: "Connection refused, a connect timeout, or a reset.",
			Check:   "Who they are: the addresses that lose most (JSON), `tcpdump`. The address that they ask against `ss -ltn`; `nft list ruleset`, `iptables-save -c`.",
			Change:  "Nothing for a scanner: a server that is bound to 127.0.0.1, or a rule that lets only the balancer in, is meant to keep it out, and a server resets who speaks another protocol than it does. For a client: the address that it asks, or the rule; of a reset the server's log may say why.",
			Vain:    "Any of this server's limits.",
		},
		{
			Code: "address_missing", Title: "the listener's address is not there",
			Seen: "The kernel's route to the address that is listened on is not local, and no interface that is up has it: it was moved to another machine, or an interface was configured again. The status is warning where connections are held, or were while the address was there, " +
				"and the socket may only be bound to addresses that are there; losing where clients' SYNs still come for it. Info alone on a standby (`net.ipv4.ip_nonlocal_bind`, IP_FREEBIND) that waits for its address. Nothing is said where clients are let in all the same, or of a transparent proxy (IP_TRANSPARENT).",
			Clients: "Connect timeouts, \"no route to host\", or the answer of another machine that has the address now. Requests on connections of before have no answer.",
			Check:   "`ip -br address`; `ip route get ADDRESS` begins with local where packets to it are delivered.",
			Change:  "Give it back to an interface; or `server.address` (the Connector's `address`): unset, or one that is there, and restart.",
			Vain:    "Any of this server's limits.",
		},
		{
			Code: "clients_before_unknown", Title: "whether clients that came before had an answer is not known",
			Seen:  "Requests have been in service for longer than clients were followed. What becomes of a client is known of those alone that began to connect meanwhile.",
			Check: "`tcpdiag snapshot --interval 10s`, longer than these clients wait; the agent follows them all the time.",
		},
		{
			Code: "answers_unknown", Title: "none of the clients has had an answer yet",
			Seen:  "Of the clients that came while they were followed none has had an answer, and none has left. A snapshot looks on for five seconds longer before it says so.",
			Check: "`tcpdiag snapshot --interval 30s`, longer than a request takes; what the handlers do: `--thread-dump`. Clients that stream to the server, or keep a connection for later, have no answer to get.",
		},
		{
			Code: "syn_flood", Title: "many single SYNs that nobody is behind",
			Seen:   "Single SYNs from many addresses, none of which was repeated or answered: a SYN flood with spoofed addresses, or clients whose connect timeout is below a second.",
			Change: "Leave `net.ipv4.tcp_syncookies` at 1 and filter in front of this machine.",
			Vain:   "Larger queues, more connections or threads: nobody is behind these SYNs.",
		},
		{
			Code: "one_source", Title: "most clients come from one address, or a few",
			Seen:  "A load balancer, a proxy or a load generator: at least half of the clients from one address, or four of five from three at most, each from a port of its own. They are its connections, not people.",
			Check: "Its own limits and retries; its log names those that were turned away.",
		},
		{
			Code: "one_peer", Title: "most connections come from one address",
			Seen:  "Most of the connections that are taken are one proxy's, or one client's.",
			Check: "The connections that it keeps open to this server (nginx: keepalive and its workers, HAProxy: maxconn and pool-max-conn): this server's limit has to be above their sum.",
		},
	}
}

func findingsOfStages() []causes.Runbook {
	return []causes.Runbook{
		{
			Code: "limits_unknown", Title: "the limit behind a full stage is not known",
			Seen:   "Clients wait or are turned away, and the limit that would explain it could not be found.",
			Change: "Give it by hand (`--max-connections N --max-threads N`), or run tcpdiag as root or as the process's user: `unavailable` says what could not be read.",
		},
		{
			Code: "queue_stands", Title: "clients wait in front of a server with room",
			Seen:  "The accept queue stands, and fewer connections are taken than maxConnections allows.",
			Check: "`connectionCount` and `maxConnections` of the ThreadPool MBean: the limit in force may be lower (set by code, or over JMX). Else the connector is paused, or its acceptor thread is stuck (`jstack PID`) or gets no CPU.",
		},
		{
			Code: "requests_stand", Title: "nobody reads requests",
			Seen:    "In two readings requests have waited for a second and longer of which nobody has read a byte, and it is not known that all threads are busy. Why is not known: that threads seem to be free, or the poller thread stands, shows no cause, as at a safepoint both do. It is said of any server, also of one whose process is not seen.",
			Clients: "They are connected and get no answer: read timeouts.",
			Check:   "`tcpdiag snapshot --thread-dump`, or `jstack PID`: fewer threads serve this port than it seems, or they get no CPU, or the poller thread is stuck. `-Xlog:safepoint` for pauses: one that is under way shows in no counter until it ends. Of another server than Tomcat: its own pool of threads or processes is used up, or its event loop is blocked, or a worker process is stopped.",
		},
		{
			Code: "accept_count_changed", Title: "the backlog in force is not the configured one",
			Seen:  "The backlog in force (Send-Q) is not the configured acceptCount, and `net.core.somaxconn` does not explain it.",
			Check: "Code that sets it (a connector customizer); a configuration that was changed after the start. The value in force is the kernel's: tcpdiag calculates with it.",
		},
		{
			Code: "open_files_below_max_connections", Title: "files run out before connections do",
			Seen:   "The process may open fewer files than maxConnections needs.",
			Change: "`LimitNOFILE=` of the unit, `ulimit -n` or the container's ulimits; or a lower maxConnections, so that clients wait in the queue instead of `accept()` failing.",
		},
		{
			Code: "forecast_open_files", Title: "open files will run out",
			Seen:   "At the present rate the open files reach their limit within minutes.",
			Change: "See open_files.",
		},
		{
			Code: "forecast_ephemeral_ports", Title: "local ports will run out",
			Seen:   "At the present rate the local ports towards one destination are used up within minutes.",
			Change: "See ephemeral_ports.",
		},
		{
			Code: "accept_queue_peak", Title: "the accept queue was nearly full for a moment",
			Seen:   "Between two snapshots the queue was at four fifths or more; only the samples show it.",
			Change: "Nothing, if it is rare. A burst that is a little larger turns clients away.",
		},
		{
			Code: "unclassified", Title: "what some connections do cannot be seen",
			Seen: "Encrypted or multiplexed connections, half-sent requests, WebSockets, or asynchronous handlers: they hold a connection each, and it is not known whether they are idle or in service.",
		},
		{
			Code: "connections_partial", Title: "not all connections could be counted",
			Seen:   "The walk through the socket table was cut short every time.",
			Change: "Look again when fewer connections open and close, or use a longer `--scan-interval`.",
		},
		{
			Code: "connections_undercounted", Title: "slots of reset connections could not be counted",
			Seen:   "Connections wait though fewer are seen than maxConnections allows; Tomcat may hold slots for connections that their clients have reset.",
			Change: "Run as root or as the process's user and group, so that `/proc/PID/fd` can be read.",
		},
		{
			Code: "reset_connections", Title: "slots are held by connections that are gone",
			Seen:   "Descriptors of the process have no socket any more, as after a client's reset, which the server notices when it next reads or writes.",
			Change: "Shorten the handler, or let it write early: the slot is free again when the handler ends.",
		},
		{
			Code: "other_process", Title: "another process has connections of this port",
			Seen:   "A process of the same name, which does not listen on the port, has descriptors of some of its connections: the server before, which has closed its listener and serves what it has, while the next one listens. They are in none of the listener's numbers.",
			Change: "Nothing, if it is meant to serve the rest of its requests. How long it may is `spring.lifecycle.timeout-per-shutdown-phase`.",
		},
		{
			Code: "max_connections_note", Title: "what was found about maxConnections",
			Seen: "The value in force is not simply the configured one: ignored, overruled, inferred, or uncertain. The finding says which.",
		},
		{
			Code: "accept_count_note", Title: "what was found about acceptCount",
			Seen: "As `max_connections_note`.",
		},
		{
			Code: "max_threads_note", Title: "what was found about maxThreads",
			Seen: "As `max_connections_note`.",
		},
	}
}

func findingsOfProcess() []causes.Runbook {
	return []causes.Runbook{
		{
			Code: "waiting_inside", Title: "the threads wait for something in the process itself",
			Seen: "A finding beside `max_threads`: at least half of the busy threads wait for a lock, a pool or a timer, none of them in a call on a connection: a lock of the application's, a pool whose connections were not given back or are idle in a transaction, a rate limiter, `Thread.sleep`. " +
				"Where the configuration names a server with a pool and no connection to it is open, that is said: the server may be down, and every thread waits until the pool gives up. " +
				"More threads are not advised beside it, unless what the threads wait for ends by a timeout in a process that has no server to ask: a timer.",
			Check:  "`tcpdiag snapshot --thread-dump`, as the server's user and group. It asks the JVM, as `jstack` does, and shows where its threads are: \"19 × HikariDataSource.getConnection ← OrderService.find\" are 19 threads that OrderService.find has sent into the pool.",
			Change: "What that method waits for.",
			Vain:   "More threads: they wait there, too.",
		},
		{
			Code: "waiting_for_file", Title: "the threads wait for a file or a pipe",
			Seen:   "At least half of the busy threads are in a call on a file or a pipe: open(2), stat(2), fsync(2), waiting for a lock of the file, or read(2) and write(2) on what is no socket. On a file system that answers nobody is seen there.",
			Check:  "`jstack PID` for where they are; `/proc/mounts` for a network file system that does not answer, `df` for a full disk; a program whose output is read and does not end, a pipe that nobody reads; who has the lock (`/proc/locks`).",
			Change: "What that file is on; or do not wait for it in a request.",
			Vain:   "More threads: they wait there, too.",
		},
		{
			Code: "waiting_for_socket", Title: "the threads wait for an answer over UDP or on a Unix socket",
			Seen:   "At least half of the busy threads wait for a socket that is of UDP (port 53: they look a name up, and the name server does not answer) or of the Unix domain.",
			Check:  "`/etc/resolv.conf` of the process and whether its name servers answer; `jstack PID` for which name or which client library; `ss -xp` for who is at the other end of a Unix socket.",
			Change: "The name server, or a lower `options timeout:1 attempts:2` in resolv.conf; whoever does not answer.",
			Vain:   "More threads: they wait there, too.",
		},
		{
			Code: "poller_blocked", Title: "the poller thread does something else",
			Seen:    "In two readings the thread that hands requests to the others waits for a timer or a peer, and requests are unread: an executor runs in it what it cannot take (CallerRunsPolicy).",
			Clients: "Connected, and no answer until that one request is done; no timeout of the connector ends a connection meanwhile.",
			Check:   "`jstack PID`: the `-Poller` thread is in the application's code.",
			Change:  "An executor that queues or rejects what it cannot take.",
		},
		{
			Code: "unacknowledged", Title: "clients acknowledge nothing that is sent to them",
			Seen:    "A fifth of the connections have had the same bytes repeated three times and more (tcpi_retransmits), in two readings, and nothing has come back.",
			Clients: "Their host or network is gone; or small packets arrive and large ones do not (the path's MTU): a page that never ends.",
			Check:   "`ss -tino 'sport = :PORT'`: retrans, unacked; `ping -M do -s 1472 CLIENT`.",
			Change:  "For large packets: `net.ipv4.tcp_mtu_probing=1`, or clamp the MSS. For clients that are gone: a heartbeat or a lifetime of streams in the application; `net.ipv4.tcp_retries2` is how long the kernel tries.",
			Vain:    "More threads or connections.",
		},
		{
			Code: "segments_repeated", Title: "many segments are sent again",
			Seen:   "Of what the network namespace sent on open connections at least ten segments and 3 % were sent again (`RetransSegs` less `TCPSynRetrans`, beside `OutSegs`): to clients of this port, of others, or to servers that are asked.",
			Check:  "`ss -tino` for whose (retrans); `ip -s -s link`, `tc -s qdisc`. Below 1 % is usual in a data centre; 2.8 % was the average of a large site's web servers, with clients all over the Internet ([Dukkipati et al., 2011](https://research.google.com/pubs/pub37486.html)).",
			Change: "See lossy_network.",
		},
		{
			Code: "clients_left", Title: "clients close while the server still has their requests",
			Seen:    "Three connections at least, and a fifth of those that are not idle, are in CLOSE_WAIT for half a second and longer, in two readings, while threads are free: Tomcat closes an idle connection as soon as its client's FIN comes, so these have a request in service, with a thread or asynchronously. Streams are left out. A client that ends its own side alone to read its answer looks the same: that they have closed shows in a close_notify (TLS), a part of their answers that came before, others that had no answer, or ten seconds of it. Long polls that clients end by their own timeout look the same.",
			Clients: "A read timeout: their patience is shorter than the request takes. The header may have come. Of a long poll that they begin again: nothing, but for what was sent to the one that they had ended.",
			Check:   "`ss -tn state close-wait 'sport = :PORT'`; `jstack PID`: where the requests' threads stand; the clients' timeout.",
			Change:  "What the handlers wait for, with a timeout below the clients'; a timeout of asynchronous requests; long polls: an answer before the clients' timeout; or the clients' timeout.",
			Vain:    "More threads or connections.",
		},
		{
			Code: "unheard_clients", Title: "something in front of their sockets takes what connected clients send",
			Seen:    "Three clients at least ended a connection, or were sent a reset, and their sockets here are open and have heard nothing of it (tcpi_last_ack_recv), nor of its repetition (tcpi_segs_in). Seen by their segments (CAP_NET_RAW). Under a flood some of them are not asked for.",
			Clients: "A request on an open connection has no answer, or is reset: a rule drops or rejects it, mostly as connection tracking has forgotten the connection.",
			Check:   "`nft list ruleset`, `iptables-save -c`: rules with `ct state invalid`; `net.netfilter.nf_conntrack_tcp_timeout_established`, `nf_conntrack_tcp_loose`.",
			Change:  "The rule, or the timeout; `keepAliveTimeout` below it.",
			Vain:    "More threads or connections.",
		},
		{
			Code: "tls_ended", Title: "clients end their TLS handshakes",
			Seen:    "Three clients at least, and a fifth of those that sent something, began with a ClientHello, had more than an alert from the server, and ended the connection within ten seconds without the rest of their handshake. Seen by their segments (CAP_NET_RAW); of a ClientHello the first byte is read, and of other records none.",
			Clients: "curl: error 60, certificate problem; Java: PKIX path building failed, or No subject alternative names; Go: failed to verify certificate. On a port without TLS: wrong version number, Unsupported or unrecognized SSL message.",
			Check:   "`openssl s_client -connect NAME:PORT -servername NAME -verify_return_error -verify_hostname NAME` from a client's host; what the server's certificate is for, and until when.",
			Change:  "The certificate, or the chain that is sent with it; or the authorities that the clients trust. On a port without TLS: the scheme of the address, or `server.ssl`, `SSLEnabled`.",
			Vain:    "More threads or connections.",
		},
		{
			Code: "alerts_unknown", Title: "answers of the length of a TLS alert",
			Seen:    "Of a server that is not known to speak TLS, and not known not to: three clients at least, and a fifth of those that sent something, had 7 bytes as their whole answer, and the server ended the connection. Seen by the numbers of its segments (CAP_NET_RAW); nothing is read of them.",
			Clients: "Asked by `http://`: empty reply, connection closed. Asked by `https://`: handshake failure, protocol version.",
			Check:   "`openssl s_client -connect NAME:PORT` from a client's host.",
			Change:  "The scheme of the address that clients or health checks ask; or a version of TLS and a cipher that both have.",
			Vain:    "More threads or connections.",
		},
		{
			Code: "forgotten_connections", Title: "something in between no longer knows clients' connections",
			Seen:    "Of the connections that the server has ended lately three at least, and a fifth, are in FIN_WAIT1, their FIN repeated for five seconds and longer, in two readings, while others of the same addresses are heard of. Hosts that share an address, of which many are gone, look the same. Before the server ends connections nothing is seen here, nor what is lost in between.",
			Clients: "The next request on an idle connection has no answer: a firewall, NAT or load balancer has forgotten it.",
			Check:   "`ss -tano state fin-wait-1 'sport = :PORT'`; the idle timeouts in between (`nf_conntrack_tcp_timeout_established`) against `keepAliveTimeout`.",
			Change:  "`keepAliveTimeout`, or the idle timeout of the clients' pools, below those in between; or TCP keep-alive.",
			Vain:    "More threads or connections.",
		},
		{
			Code: "semaphore_valve", Title: "a valve lets fewer requests through than there are threads",
			Seen:   "All threads are busy, and a SemaphoreValve of `server.xml` lets fewer requests through at a time: the other threads wait in it.",
			Change: "What the handlers wait for; or the valve's `concurrency`, if what they call has room for more at the same time.",
			Vain:   "More threads: they wait there, too.",
		},
		{
			Code: "possible_downstream", Title: "the threads may wait for one peer",
			Seen:   "As `downstream`, but it is not known whether what is in flight is so at rest, too, or whether it is this process's.",
			Change: "An agent learns what is in flight at rest; as root, or as the process's user, tcpdiag sees which threads wait there.",
			Vain:   "More threads, if they wait there.",
		},
		{
			Code: "possible_connection_pool", Title: "the threads may wait for a pool's connections",
			Seen:   "As `connection_pool`, but it is not known whether what is in flight is so at rest, too, or whether it is this process's; or something else may be what the threads wait for, which is said: a lock that is held over a call, or another pool's connections that are kept over it (Hibernate's session in view, `@Transactional` around a call of a service).",
			Change: "As for `possible_downstream`.",
			Vain:   "More threads, if they wait there.",
		},
		{
			Code: "carriers_taken", Title: "virtual threads wait for a carrier",
			Seen:   "The JVM's own account (`--thread-dump`, JDK 24 and later): all carriers of its virtual threads are taken, and others that could run wait for one.",
			Check:  "Whether those on the carriers compute, or wait and are pinned (JFR's `jdk.VirtualThreadPinned`).",
			Change: "More CPUs for what computes; a pool of platform threads for what pins.",
			Vain:   "maxThreads, which does not apply.",
		},
		{
			Code: "deadlock", Title: "threads wait for one another's locks",
			Seen:   "The JVM found threads that wait for one another's locks (`--thread-dump`).",
			Change: "Restart it; have the application take its locks in one order.",
		},
		{
			Code: "process_stopped", Title: "the process was stopped",
			Seen:   "Beside another cause: the process was stopped or frozen in one of the two snapshots. Or worker processes are stopped (nginx, servers that fork), while others accept, or the first process does: what they have is not answered.",
			Change: "See jvm_pause.",
		},
		{
			Code: "backend_silent", Title: "a backend answers no connect",
			Seen:    "Three connects at least of the process to one peer have had no answer for three seconds and longer (SYN_SENT), as many as a fifth of the requests that it has in hand. Where all threads are busy the cause is `downstream`.",
			Clients: "Requests that need this peer end in an error, or in the client's own timeout.",
			Check:   "`ss -tn state syn-sent`; whether the peer runs, listens and has room in its accept queue, and which firewall lies between.",
			Change:  "A connect timeout in the client library, below the timeout of the callers here.",
			Vain:    "More threads: they wait there, too.",
		},
		{
			Code: "pids_limit", Title: "no more threads can be started",
			Seen:   "A finding beside the verdict: a thread was refused since the process is watched (`pids.events` of its cgroup), or it has nearly as many threads as `pids.max` allows. Other processes of the cgroup count too and are not seen.",
			Check:  "The log: \"unable to create native thread\". A poller or acceptor thread may have ended of it: connections are accepted then, and no request is read until a restart.",
			Change: "`--pids-limit` of the container, `podPidsLimit` of the kubelet, `TasksMax=` of the unit; or fewer threads.",
		},
		{
			Code: "user_threads_limit", Title: "the user may have no more threads",
			Seen:   "A finding beside the verdict: the threads of all processes of the process's user are nearly as many as its RLIMIT_NPROC (\"Max processes\" of `/proc/PID/limits`). Root has no such limit.",
			Check:  "The log: \"unable to create native thread\". A poller or acceptor thread may have ended of it: connections are accepted then, and no request is read until a restart.",
			Change: "`ulimit -u`, `LimitNPROC=` of the unit, `/etc/security/limits.conf`; or a user of its own for the server.",
		},
		{
			Code: "not_observable", Title: "requests cannot be seen from outside",
			Seen:   "The connector speaks TLS or HTTP/2, so that requests cannot be seen from outside. `ok` then means that nothing was lost and no stage is seen full; whether requests wait for a thread is not known.",
			Change: "Let tcpdiag ask the application: `server.tomcat.mbeanregistry.enabled=true` and Actuator's metrics in Spring Boot; `currentThreadsBusy` over JMX in a standalone Tomcat.",
		},
	}
}

func findingsOfKernel() []causes.Runbook {
	return []causes.Runbook{
		{
			Code: "syncookies", Title: "SYNs were answered with cookies",
			Seen:   "A SYN queue was full, and SYNs were answered with a cookie: these clients were not turned away.",
			Change: "Nothing. If it is no flood, a larger acceptCount makes the SYN queue longer, too.",
		},
		{
			Code: "resets_unknown", Title: "resets left this network namespace, from which port is not known",
			Seen:    "Handshakes are not followed, and `OutRsts` rose by five at least and a fifth of the connections that came, beyond clients that were refused, or connections that were reset with unread bytes, while connections that the listener has ended are in TIME_WAIT or FIN_WAIT2.",
			Clients: "If they are this server's: a proxy sees a reset on a connection that it had kept idle. A scan of closed ports looks the same.",
			Check:   "`tcpdump -nni any 'tcp[tcpflags] & tcp-rst != 0 and src port PORT'`; `keepAliveTimeout` against the idle timeout of the proxy.",
			Change:  "`keepAliveTimeout` above the proxy's, where they leave its port.",
			Vain:    "More threads or connections.",
		},
		{
			Code: "closed_unread", Title: "connections were closed with unread bytes",
			Seen:    "`TCPAbortOnClose` of the network namespace moved: a connection was closed while bytes that came were not read, and its other end was reset. It counts servers and clients alike.",
			Clients: "A reset, or a broken pipe, in the midst of an upload, instead of the answer (413, 401).",
			Change:  "`server.tomcat.max-swallow-size=-1` (`maxSwallowSize`), or read the body before answering.",
		},
		{
			Code: "abort_on_overflow", Title: "a full accept queue resets clients",
			Seen:   "`net.ipv4.tcp_abort_on_overflow` is 1: a client whose final ACK meets a full accept queue is reset. SYNs are still dropped in silence.",
			Change: "Set it to 0, unless clients are known to retry after a reset.",
		},
		{
			Code: "tcp_memory_pressure", Title: "the kernel ran short of memory for TCP",
			Seen:  "`TCPMemoryPressures` or `TCPAbortOnMemory` moved.",
			Check: "\"mem\" in `/proc/net/sockstat` against `net.ipv4.tcp_mem` (pages).",
			Vain:  "Tomcat's limits.",
		},
	}
}
