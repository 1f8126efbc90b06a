package waits

import (
	"net"
	"os/exec"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const (
	postgresPort = 15432
	redisPort    = 16379
)

// postgres starts a database with a table of one order.
func (s *stage) postgres(settings ...string) *exec.Cmd {
	database := s.Postgres(postgresPort, settings...)
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

func psql(database, text string) []string { return rig.Psql(postgresPort, database, text) }

func (s *stage) sql(database, text string) string { return s.SQL(postgresPort, database, text) }

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
