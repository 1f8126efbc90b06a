package threaddump

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxMethod bounds a method's name in bytes.
const maxMethod = 256

// method is a frame's class and method without what differs from one run to the
// next: the address or number behind the slash of a hidden class
// ("App$$Lambda/0x00007f11.run", JDK 8's "App$$Lambda$12/471910020.run"), the number
// of a lambda or a proxy.
func method(frame string) string {
	for {
		slash := strings.IndexByte(frame, '/')
		if slash < 0 {
			break
		}
		dot := strings.IndexByte(frame[slash:], '.')
		if dot < 0 {
			return ""
		}
		frame = frame[:slash] + frame[slash+dot:]
	}
	for _, numbered := range []string{"$$Lambda$", "$Proxy"} {
		frame = withoutNumber(frame, numbered)
	}
	if !strings.Contains(frame, ".") || len(frame) > maxMethod {
		return ""
	}
	return model.Escape(strings.ReplaceAll(frame, `\`, "/"))
}

func withoutNumber(frame, behind string) string {
	before, after, ok := strings.Cut(frame, behind)
	if !ok {
		return frame
	}
	rest := strings.TrimLeft(after, "0123456789")
	if rest == after {
		return frame
	}
	return before + behind + rest
}
