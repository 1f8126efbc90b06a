package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	postgresPort = 15432
	redisPort    = 16379
)

// backend answers each line with a line after a while, and keeps the number of
// those that it has not answered yet.
type backend struct {
	address string
	waiting atomic.Int64
}

func (b *bench) backend(delay time.Duration) *backend {
	listener, err := (&net.ListenConfig{}).Listen(b.ctx, "tcp", "127.0.0.1:0")
	b.must(err)
	s := &backend{address: listener.Addr().String()}
	var mu sync.Mutex
	var all []net.Conn
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, c)
			mu.Unlock()
			go s.serve(c, delay)
		}
	}()
	b.ends = append(b.ends, func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			_ = c.Close()
		}
	})
	return s
}

func (s *backend) serve(c net.Conn, delay time.Duration) {
	in := bufio.NewReader(c)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
		s.waiting.Add(1)
		time.Sleep(delay)
		s.waiting.Add(-1)
		if _, err := c.Write([]byte("\n")); err != nil {
			return
		}
	}
}

// postgres starts a database with a table of one order.
func (b *bench) postgres(settings ...string) *exec.Cmd {
	owner, err := user.Lookup("postgres")
	b.must(err)
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bins) == 0 {
		b.must(fmt.Errorf("no PostgreSQL: apt-get install postgresql"))
	}
	data, err := os.MkdirTemp(b.dir, "postgres-")
	b.must(err)
	b.must(os.Chown(data, uid, gid))
	as := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Dir = data
		return cmd
	}
	if out, err := as(exec.CommandContext(b.ctx, bins[0]+"/initdb", "-D", data, "-A", "trust", "-U", "app")).CombinedOutput(); err != nil {
		b.must(fmt.Errorf("initdb: %w\n%s", err, out))
	}
	for _, file := range []string{"server.crt", "server.key"} {
		if text, err := os.ReadFile(filepath.Join(b.dir, file)); err == nil {
			b.must(os.WriteFile(filepath.Join(data, file), text, 0o600))
			b.must(os.Chown(filepath.Join(data, file), uid, gid))
		}
	}
	args := []string{"-D", data, "-p", strconv.Itoa(postgresPort), "-k", data, "-c", "max_connections=200"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	database := b.start("postgres", as(exec.CommandContext(b.ctx, bins[0]+"/postgres", args...)))
	b.until("the database", func() bool { return exec.CommandContext(b.ctx, "psql", psql("postgres", "select 1")...).Run() == nil })
	b.sql("postgres", "create database orders")
	b.sql("orders", "create table orders(id bigint primary key, item text); insert into orders values (1, 'one')")
	return database
}

// encrypted is that database with a certificate of its own.
func (b *bench) encrypted() {
	b.must(output(b.ctx, b.dir, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
		"-days", "2", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.crt"))
	b.postgres("ssl=on")
}

func psql(database, text string) []string {
	return []string{"-h", "127.0.0.1", "-p", strconv.Itoa(postgresPort), "-U", "app", "-d", database, "-Atc", text}
}

func (b *bench) sql(database, text string) string {
	out, err := exec.CommandContext(b.ctx, "psql", psql(database, text)...).Output()
	b.must(err)
	return strings.TrimSpace(string(out))
}

// active are the sessions of the application that execute something.
func (b *bench) active() int {
	n, err := strconv.Atoi(b.sql("postgres", "select count(*) from pg_stat_activity where application_name = 'PostgreSQL JDBC Driver' and state = 'active'"))
	b.must(err)
	return n
}

// lock holds a table until the case ends.
func (b *bench) lock() {
	b.start("lock", exec.CommandContext(b.ctx, "psql", psql("orders", "begin; lock table orders; select pg_sleep(600)")...))
	b.until("the lock", func() bool {
		return b.sql("postgres", "select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted and relation is not null") != "0"
	})
}

func (b *bench) redis() *exec.Cmd {
	cmd := b.start("redis", exec.CommandContext(b.ctx, "redis-server", "--port", strconv.Itoa(redisPort), "--save", "", "--dir", b.dir))
	b.until("redis", func() bool {
		c, err := (&net.Dialer{}).DialContext(b.ctx, "tcp", "127.0.0.1:"+strconv.Itoa(redisPort))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return cmd
}
