package rig

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Postgres starts a database of its own, with a user named app, until the case ends. server.crt and
// server.key of the case's folder are its certificate, where they are there.
func (c *Case) Postgres(port int, settings ...string) *exec.Cmd {
	c.Helper()
	owner, err := user.Lookup("postgres")
	c.Must(err)
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bins) == 0 {
		c.Must(fmt.Errorf("no PostgreSQL: apt-get install postgresql"))
	}
	c.Must(os.Chmod(c.Dir, 0o755)) //nolint:gosec // PostgreSQL does not run as root
	data, err := os.MkdirTemp(c.Dir, "postgres-")
	c.Must(err)
	c.Must(os.Chown(data, uid, gid))
	as := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Dir = data
		return cmd
	}
	if out, err := as(exec.CommandContext(c.Ctx, bins[0]+"/initdb", "-D", data, "-A", "trust", "-U", "app")).CombinedOutput(); err != nil {
		c.Must(fmt.Errorf("initdb: %w\n%s", err, out))
	}
	for _, file := range []string{"server.crt", "server.key"} {
		if text, err := os.ReadFile(filepath.Join(c.Dir, file)); err == nil {
			c.Must(os.WriteFile(filepath.Join(data, file), text, 0o600))
			c.Must(os.Chown(filepath.Join(data, file), uid, gid))
		}
	}
	args := []string{"-D", data, "-p", strconv.Itoa(port), "-k", data, "-c", "max_connections=200"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	database := c.Run(as(exec.CommandContext(c.Ctx, bins[0]+"/postgres", args...)))
	c.Until("the database", func() bool {
		return exec.CommandContext(c.Ctx, "psql", Psql(port, "postgres", "select 1")...).Run() == nil
	})
	return database
}

// Psql are the arguments that ask a database on this host.
func Psql(port int, database, text string) []string {
	return []string{"-h", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "app", "-d", database, "-Atc", text}
}

// SQL is what the database answers.
func (c *Case) SQL(port int, database, text string) string {
	c.Helper()
	out, err := exec.CommandContext(c.Ctx, "psql", Psql(port, database, text)...).Output()
	c.Must(err)
	return strings.TrimSpace(string(out))
}
