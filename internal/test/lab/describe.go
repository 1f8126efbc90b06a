package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// describe notes the machine and the versions.
func describe(ctx context.Context, k kit) environment {
	e := environment{Began: time.Now(), Cores: runtime.NumCPU(), CPU: "CPU", Kernel: firstLine("/proc/sys/kernel/osrelease")}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				e.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	load := strings.Fields(firstLine("/proc/loadavg"))
	e.LoadBefore = strings.Join(load[:min(3, len(load))], ", ")
	e.Versions = []string{"sample server: Spring Boot 3.5.16, Tomcat 10.1.55", "standalone: Tomcat " + tomcatVersion}
	for _, home := range []string{"", newJava} {
		if v := javaVersion(ctx, home); v != "" {
			e.Versions = append(e.Versions, v)
		}
	}
	if k.Tools.K6 != "" {
		e.Versions = append(e.Versions, "k6 "+k6Version)
	}
	if k.Tools.Locust != "" {
		e.Versions = append(e.Versions, "Locust "+locustVersion)
	}
	return e
}

// javaVersion is the first line of java -version: `openjdk version "17.0.19"`.
func javaVersion(ctx context.Context, home string) string {
	java := "java"
	if home != "" {
		java = home + "/bin/java"
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return "Java " + strings.Trim(strings.Fields(line + ` "" ""`)[2], `"`)
}

func firstLine(path string) string {
	b, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
