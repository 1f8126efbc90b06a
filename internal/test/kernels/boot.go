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

// machine is how a guest is emulated. Its clock counts its instructions, and jumps
// where it waits: what else this machine does changes how long a guest takes and
// nothing of what it sees.
type machine struct {
	Program string
	Args    []string
	Console string
}

// machineFor is an emulator with a processor on which an instruction takes two
// nanoseconds (QEMU 7.2 does not boot two of such). Without cmpxchg16b: that QEMU
// corrupts the flags behind it, and kernels of 6.12 panic of that. Without erms,
// for kernels that have it copy byte by byte, which takes an emulator eight times
// as long.
func machineFor(arch string) machine { return emulator(arch, counted(1)) }

// slowMachine takes eight nanoseconds for every instruction: about twenty times
// slower than a server.
func slowMachine(arch string) machine { return emulator(arch, counted(3)) }

// twoProcessors is for what takes two. Its clock is this machine's.
func twoProcessors(arch string) machine {
	return emulator(arch, []string{"-accel", "tcg,thread=multi", "-smp", "2"})
}

// counted is a clock that goes by 2^shift nanoseconds with each instruction.
func counted(shift int) []string {
	return []string{"-accel", "tcg,thread=single", "-smp", "1", "-icount", fmt.Sprintf("shift=%d,sleep=off", shift)}
}

func emulator(arch string, args []string) machine {
	if arch == "arm64" {
		return machine{"qemu-system-aarch64", append(args, "-machine", "virt", "-cpu", "cortex-a72"), "ttyAMA0"}
	}
	return machine{"qemu-system-x86_64", append(args, "-cpu", "max,-cx16,-erms"), "ttyS0"}
}

// guest is a kernel, booted once on each of some machines.
type guest struct {
	Name   string
	Kernel string // image
	Initrd string
	Disk   string
	Commit string // of what it runs
	Log    func(boot) string
	Limit  time.Duration // for each boot
	Boots  []boot
}

func (g guest) logs() (all []bootLog) {
	for _, b := range g.Boots {
		all = append(all, bootLog{b.Name, g.Log(b)})
	}
	return all
}

// run boots the guest on each machine; what it prints is in the boot's log.
func (g guest) run(ctx context.Context) error {
	for _, b := range g.Boots {
		if err := g.boot(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (g guest) boot(ctx context.Context, b boot) error {
	ctx, cancel := context.WithTimeout(ctx, g.Limit)
	defer cancel()
	console, err := os.Create(g.Log(b))
	if err != nil {
		return err
	}
	defer console.Close()
	start := time.Now()
	cmd := exec.CommandContext(ctx, b.Machine.Program, g.arguments(b)...)
	cmd.Stdout, cmd.Stderr = console, os.Stderr
	if err := cmd.Run(); err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", b.Machine.Program, err)
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	_, err = fmt.Fprintf(console, "\n@@took %.0f %.0f\n@@commit %s\n", time.Since(start).Seconds(), spent.Seconds(), g.Commit)
	return err
}

func (g guest) arguments(b boot) []string {
	parameters := "quiet panic=1 console=" + b.Machine.Console + " tcpdiag_suite=" + b.suite()
	return slices.Concat(b.Machine.Args, []string{
		"-m", "2048", "-nographic", "-no-reboot", "-nic", "none",
		"-drive", "if=virtio,format=raw,readonly=on,file=" + g.Disk,
		"-kernel", g.Kernel, "-initrd", g.Initrd, "-append", parameters,
	})
}

// kernelImage finds the image in a kernel's package: under boot, or since 7.0
// next to the modules.
func kernelImage(unpacked string) (string, error) {
	for _, pattern := range []string{"boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"} {
		if found, err := filepath.Glob(filepath.Join(unpacked, pattern)); err == nil && len(found) == 1 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("no kernel image in %s", unpacked)
}
