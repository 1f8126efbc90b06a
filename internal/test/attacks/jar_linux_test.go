package attacks

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bootJar is an executable jar of Spring Boot, as small as one can be that is
// taken for one, with more entries.
func bootJar(more map[string]string) string {
	entries := map[string]string{
		"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\r\nMain-Class: org.springframework.boot.loader.launch.JarLauncher\r\n" +
			"Start-Class: app.Main\r\nSpring-Boot-Version: 3.5.16\r\nSpring-Boot-Classes: BOOT-INF/classes/\r\nSpring-Boot-Lib: BOOT-INF/lib/\r\n\r\n",
		"BOOT-INF/lib/spring-boot-3.5.16.jar":          "PK",
		"BOOT-INF/lib/tomcat-embed-core-10.1.55.jar":   "PK",
		"BOOT-INF/classes/application.properties":      fmt.Sprintf("server.port=%d\nserver.tomcat.accept-count=33\n", hostilePort),
		"BOOT-INF/classes/org/example/Application.cls": "",
	}
	maps.Copy(entries, more)
	return zipped(entries, zip.Store)
}

func zipped(entries map[string]string, method uint16) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		how := method
		if strings.Contains(name, "deflated") {
			how = zip.Deflate
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: how})
		if err == nil {
			_, err = w.Write([]byte(entries[name]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// nestedJars is a jar of n jars, all compressed: to look into one is to hold it.
func nestedJars(n int) string {
	inner := zipped(map[string]string{"config/application.properties": strings.Repeat("a", 64<<10)}, zip.Store)
	entries := make(map[string]string, n)
	for i := range n {
		entries[fmt.Sprintf("BOOT-INF/lib/deflated-%d.jar", i)] = inner
	}
	return bootJar(entries)
}
