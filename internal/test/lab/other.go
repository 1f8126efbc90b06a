//go:build !linux

package main

import (
	"context"
	"errors"
	"syscall"
)

const insideEnv = "TCPDIAG_LAB_SCENARIO"

var errLinux = errors.New("the lab needs Linux")

func outside(context.Context, kit, string, scenario) row { return row{Broken: errLinux.Error()} }
func inside(context.Context, string) error               { return errLinux }
func throttle(int, float64) error                        { return errLinux }
func limitFiles(int, uint64) error                       { return errLinux }
func diesWithParent() *syscall.SysProcAttr               { return nil }
