package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// machine is how a guest is emulated.
type machine struct {
	Program string
	Args    []string
	Console string
	// OwnClock tells the tests, by init's environment, that no other program of
	// this machine can hold the guest up.
	OwnClock bool
}

// machineFor is an emulator with two processors. Without cmpxchg16b: QEMU 7.2
// corrupts the flags behind it, and kernels of 6.12 panic of that.
func machineFor(arch string) machine {
	if arch == "arm64" {
		return machine{
			Program: "qemu-system-aarch64", Console: "ttyAMA0",
			Args: []string{"-machine", "virt", "-accel", "tcg,thread=multi", "-cpu", "cortex-a72", "-smp", "2"},
		}
	}
	return machine{
		Program: "qemu-system-x86_64", Console: "ttyS0",
		Args: []string{"-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp", "2"},
	}
}

// slowMachine has one processor on which every instruction takes eight
// nanoseconds of its own clock, however fast this machine is: about twenty
// times slower than a server's. Where it waits, its clock jumps.
func slowMachine() machine {
	return machine{
		Program: "qemu-system-x86_64", Console: "ttyS0", OwnClock: true,
		Args: []string{"-accel", "tcg,thread=single", "-icount", "shift=3,sleep=off", "-cpu", "max,-cx16", "-smp", "1"},
	}
}

// guest is one boot of a kernel.
type guest struct {
	Name    string
	Kernel  string // image
	Initrd  string
	Log     string
	Limit   time.Duration
	Machine machine
}

// boot runs the guest to its end; what it prints is in its log.
func (g guest) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.Limit)
	defer cancel()
	console, err := os.Create(g.Log)
	if err != nil {
		return err
	}
	defer console.Close()
	parameters := "quiet panic=1 console=" + g.Machine.Console
	if g.Machine.OwnClock {
		parameters += " tcpdiag_own_clock=1"
	}
	args := slices.Concat(g.Machine.Args, []string{
		"-m", "1536", "-nographic", "-no-reboot", "-nic", "none",
		"-kernel", g.Kernel, "-initrd", g.Initrd, "-append", parameters,
	})
	cmd := exec.CommandContext(ctx, g.Machine.Program, args...)
	cmd.Stdout, cmd.Stderr = console, os.Stderr
	start := time.Now()
	err = cmd.Run()
	if err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", g.Machine.Program, err)
	}
	_, err = fmt.Fprintf(console, "\n@@took %.0f\n", time.Since(start).Seconds())
	return err
}

// kernelImage finds the image in a kernel's package: under boot, or since 7.0
// beside the modules.
func kernelImage(unpacked string) (string, error) {
	for _, pattern := range []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"} {
		if found, err := filepath.Glob(filepath.Join(unpacked, pattern)); err == nil && len(found) == 1 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("no kernel image in %s", unpacked)
}
