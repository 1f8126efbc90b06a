package sockdiag

import "testing"

func BenchmarkDecodeSocket(b *testing.B) {
	body := capture(b, "scan")[0].body
	var s Socket
	for b.Loop() {
		if err := s.decode(body); err != nil {
			b.Fatal(err)
		}
	}
}
