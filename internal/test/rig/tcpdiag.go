package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// Run runs tcpdiag to its end and returns what it printed and its exit code.
// user nil is the present one.
func (a Artifacts) Run(ctx context.Context, user *syscall.Credential, args ...string) (stdout, stderr []byte, code int, err error) {
	var out, errs bytes.Buffer
	cmd := a.Command(ctx, user, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.Bytes(), errs.Bytes(), exit.ExitCode(), nil
	}
	if err != nil {
		return nil, nil, 0, fmt.Errorf("rig: tcpdiag: %w", err)
	}
	return out.Bytes(), errs.Bytes(), 0, nil
}

// Command prepares tcpdiag.
func (a Artifacts) Command(ctx context.Context, user *syscall.Credential, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, a.Tcpdiag, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = DiesWithParent()
	if user != nil {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Credential = user
	}
	return cmd
}

// Decode reads a snapshot document. Unknown fields are left alone: the schema
// only grows.
func Decode(b []byte) (*Document, error) {
	d := new(Document)
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("rig: snapshot document: %w", err)
	}
	if d.Schema != "tcpdiag.snapshot/v1" {
		return nil, fmt.Errorf("rig: snapshot document of schema %q", d.Schema)
	}
	return d, nil
}
