package springboot

import "strings"

// javaVersion is the JVM's version: as it says itself, or from the "release"
// file of the JDK that the executable, else the command line, lies in.
func javaVersion(p *Process) string {
	if v := plausible(p.JavaVersion); v != "" || len(p.Args) == 0 {
		return v
	}
	for _, java := range []string{p.Exe, p.Args[0]} {
		home, ok := strings.CutSuffix(java, "/bin/java")
		if !ok {
			continue
		}
		data, err := p.read(strings.TrimSuffix(home, "/jre")+"/release", maxManifest)
		if err != nil {
			continue
		}
		if v := plausible(releasedVersion(string(data))); v != "" {
			return v
		}
	}
	return ""
}

func releasedVersion(release string) string {
	for line := range strings.Lines(release) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "JAVA_VERSION="); ok {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}
