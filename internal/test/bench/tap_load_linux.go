package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// startLoad starts wrk, on the loopback.
func startLoad(ctx context.Context, args []string) (*exec.Cmd, error) {
	load := exec.CommandContext(ctx, "wrk", append(args, tomcatURL())...)
	return load, load.Start()
}

// Addresses of the two ends of the veth.
const serverEnd, clientEnd = "10.77.0.1", "10.77.0.2"

// startLoadAcross starts wrk in a network namespace of its own, joined to this one
// by a veth that ends with it.
func startLoadAcross(ctx context.Context, args []string) (*exec.Cmd, error) {
	url := strings.Replace(tomcatURL(), "127.0.0.1", serverEnd, 1)
	script := append([]string{"-n", "sh", "-c", "echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets; echo; read _; exec wrk \"$@\"", "wrk"}, append(args, url)...)
	load := exec.CommandContext(ctx, "unshare", script...)
	stdin, err := load.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := load.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := load.Start(); err != nil {
		return nil, err
	}
	if _, err = stdout.Read(make([]byte, 1)); err == nil { // it is in its namespace
		err = joined(ctx, load.Process.Pid)
	}
	if err == nil {
		_, err = stdin.Write([]byte("\n"))
	}
	if err != nil {
		rig.End(load)
	}
	return load, err
}

func joined(ctx context.Context, pid int) error {
	id := strconv.Itoa(pid)
	name := "bench" + id // the one before ends with its namespace, some time later
	for _, command := range []string{
		"ip link add " + name + " type veth peer name " + name + " netns " + id,
		"ip addr add " + serverEnd + "/24 dev " + name,
		"ip link set " + name + " up",
		"nsenter -t " + id + " -n ip addr add " + clientEnd + "/24 dev " + name,
		"nsenter -t " + id + " -n ip link set " + name + " up",
	} {
		words := strings.Fields(command)
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, out)
		}
	}
	return nil
}
