package waits

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	postgresPort = 15432
	redisPort    = 16379
)

// postgres starts a database with a table of one order.
func (s *stage) postgres(settings ...string) *exec.Cmd {
	owner, err := user.Lookup("postgres")
	s.Must(err)
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bins) == 0 {
		s.Must(fmt.Errorf("no PostgreSQL: apt-get install postgresql"))
	}
	data, err := os.MkdirTemp(s.Dir, "postgres-")
	s.Must(err)
	s.Must(os.Chown(data, uid, gid))
	as := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Dir = data
		return cmd
	}
	if out, err := as(exec.CommandContext(s.Ctx, bins[0]+"/initdb", "-D", data, "-A", "trust", "-U", "app")).CombinedOutput(); err != nil {
		s.Must(fmt.Errorf("initdb: %w\n%s", err, out))
	}
	for _, file := range []string{"server.crt", "server.key"} {
		if text, err := os.ReadFile(filepath.Join(s.Dir, file)); err == nil {
			s.Must(os.WriteFile(filepath.Join(data, file), text, 0o600))
			s.Must(os.Chown(filepath.Join(data, file), uid, gid))
		}
	}
	args := []string{"-D", data, "-p", strconv.Itoa(postgresPort), "-k", data, "-c", "max_connections=200"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	database := s.Run(as(exec.CommandContext(s.Ctx, bins[0]+"/postgres", args...)))
	s.Until("the database", func() bool { return exec.CommandContext(s.Ctx, "psql", psql("postgres", "select 1")...).Run() == nil })
	s.sql("postgres", "create database orders")
	s.sql("orders", "create table orders(id bigint primary key, item text); insert into orders values (1, 'one')")
	return database
}

// encrypted is that database with a certificate of its own.
func (s *stage) encrypted() {
	s.DoIn(s.Dir, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
		"-days", "2", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.crt")
	s.postgres("ssl=on")
}

func psql(database, text string) []string {
	return []string{"-h", "127.0.0.1", "-p", strconv.Itoa(postgresPort), "-U", "app", "-d", database, "-Atc", text}
}

func (s *stage) sql(database, text string) string {
	out, err := exec.CommandContext(s.Ctx, "psql", psql(database, text)...).Output()
	s.Must(err)
	return strings.TrimSpace(string(out))
}

// active are the sessions of the application that execute something.
func (s *stage) active() int {
	n, err := strconv.Atoi(s.sql("postgres", "select count(*) from pg_stat_activity where application_name = 'PostgreSQL JDBC Driver' and state = 'active'"))
	s.Must(err)
	return n
}

// lock holds a table until the case ends.
func (s *stage) lock() {
	s.Run(exec.CommandContext(s.Ctx, "psql", psql("orders", "begin; lock table orders; select pg_sleep(600)")...))
	s.Until("the lock", func() bool {
		return s.sql("postgres", "select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted and relation is not null") != "0"
	})
}

func (s *stage) redis() *exec.Cmd {
	cmd := s.Run(exec.CommandContext(s.Ctx, "redis-server", "--port", strconv.Itoa(redisPort), "--save", "", "--dir", s.Dir))
	s.Until("redis", func() bool {
		c, err := (&net.Dialer{}).DialContext(s.Ctx, "tcp", "127.0.0.1:"+strconv.Itoa(redisPort))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return cmd
}
