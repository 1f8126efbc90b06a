package threaddump

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Bounds on an answer. A JVM of 10,000 threads, each with 60 frames, writes about 60 MB.
const (
	maxBytes   = 64 << 20
	maxThreads = 20_000
	maxFrames  = 1024 // of a thread: HotSpot's MaxJavaStackTraceDepth
	lineLength = 4 << 10
)

// thread is one of a thread dump. Its frames are valid until the next one.
type thread struct {
	name    []byte // only to tell a server's threads: never passed on
	state   string
	carrier bool // of a virtual thread
	virtual bool
	frames  []string
}

// ending says how a thread dump ended.
type ending struct {
	deadlocked bool
	cut        bool // at one of the bounds
}

// parse reads the text of a thread dump (VM_PrintThreads: JavaThread::print_on and
// java_lang_Thread::print_stack of HotSpot 8 to 25) and calls fn with each thread of
// Java. Threads of the JVM itself have no state, and are left out.
func parse(in io.Reader, fn func(*thread)) (ending, error) {
	limited := &io.LimitedReader{R: in, N: maxBytes}
	p := parser{names: make(map[string]string), fn: fn}
	lines := bufio.NewReaderSize(limited, lineLength)
	for {
		line, err := nextLine(lines)
		if len(line) > 0 && !p.line(line) {
			return p.end, nil
		}
		if errors.Is(err, io.EOF) {
			p.flush()
			p.end.cut = p.end.cut || limited.N == 0
			return p.end, nil
		}
		if err != nil {
			return p.end, err
		}
	}
}

// nextLine is the beginning of the next line; what is beyond the bound is skipped.
func nextLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimRight(line, "\r\n"), err
	}
	line = bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}

// parser is for one answer.
type parser struct {
	current thread
	begun   bool
	java    bool // it has a state, or carries a virtual thread
	threads int
	names   map[string]string // frames, each kept once
	fn      func(*thread)
	after   bool // the threads are over
	end     ending
}

// line takes one, and reports whether more are wanted.
func (p *parser) line(line []byte) bool {
	switch {
	case bytes.HasPrefix(line, []byte("Found ")) && bytes.Contains(line, []byte("deadlock")):
		p.flush()
		p.end.deadlocked = true
		return false // the threads follow a second time
	case bytes.HasPrefix(line, []byte("JNI global ref")):
		p.flush()
		p.after = true
	case p.after:
	case line[0] == '"':
		return p.header(line)
	case p.begun:
		p.body(line)
	}
	return true
}

// header begins the next thread: `"NAME" #12 daemon prio=5 …`.
func (p *parser) header(line []byte) bool {
	p.flush()
	if p.threads >= maxThreads {
		p.end.cut = true
		return false
	}
	name := line[1:]
	if end := bytes.LastIndexByte(name, '"'); end >= 0 {
		name = name[:end]
	}
	p.begun, p.java = true, false
	p.current = thread{name: append(p.current.name[:0], name...), frames: p.current.frames[:0]}
	return true
}

func (p *parser) body(line []byte) {
	t := &p.current
	if frame, ok := bytes.CutPrefix(line, []byte("\tat ")); ok {
		if f := p.frame(frame); f != "" && len(t.frames) < maxFrames {
			t.frames = append(t.frames, f)
		}
		return
	}
	line = bytes.TrimLeft(line, " ")
	if state, ok := bytes.CutPrefix(line, []byte("java.lang.Thread.State: ")); ok {
		p.java, t.state = true, stateOf(state)
		return
	}
	switch {
	case bytes.HasPrefix(line, []byte("Carrying virtual thread #")):
		p.java, t.carrier = true, true
	case bytes.HasPrefix(line, []byte("Mounted virtual thread #")): // since JDK 23
		p.flush()
		p.begun, p.java = true, true
		p.current = thread{name: p.current.name[:0], frames: p.current.frames[:0], virtual: true}
	}
}

// parseVirtual reads the text of Thread.dump_to_file (jdk.internal.vm.ThreadDumper of
// JDK 21 to 25) and calls fn with each virtual thread. cut: there were more than are read.
func parseVirtual(in io.Reader, fn func(*thread)) (cut bool, err error) {
	limited := &io.LimitedReader{R: in, N: maxBytes}
	p := parser{names: make(map[string]string), fn: fn}
	lines := bufio.NewReaderSize(limited, lineLength)
	for {
		line, err := nextLine(lines)
		if len(line) > 0 && !p.virtual(line) {
			return true, nil
		}
		if err != nil {
			p.flush()
			return limited.N == 0, ignoreEOF(err)
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// virtual takes a line, and reports whether more are wanted: `#22 "NAME" virtual
// WAITING …` (the state since JDK 24) and its frames.
func (p *parser) virtual(line []byte) bool {
	text := bytes.TrimLeft(line, " ")
	switch {
	case line[0] == '#':
		p.flush()
		first, last := bytes.IndexByte(line, '"'), bytes.LastIndexByte(line, '"')
		kind, ok := bytes.CutPrefix(line[last+1:], []byte(" virtual"))
		if first < 0 || first == last || !ok {
			return true
		}
		if p.threads >= maxThreads {
			return false
		}
		p.begun, p.java = true, true
		p.current = thread{name: append(p.current.name[:0], line[first+1:last]...), frames: p.current.frames[:0], virtual: true, state: stateOf(bytes.TrimLeft(kind, " "))}
	case p.begun && len(text) < len(line) && !bytes.HasPrefix(text, []byte("- ")):
		if f := p.frame(bytes.TrimPrefix(text, []byte("at "))); f != "" && len(p.current.frames) < maxFrames {
			p.current.frames = append(p.current.frames, f)
		}
	}
	return true
}

// frame is a frame's method, "" where it is none.
func (p *parser) frame(line []byte) string {
	if end := bytes.IndexByte(line, '('); end > 0 {
		line = line[:end]
	}
	if known, ok := p.names[string(line)]; ok {
		return known
	}
	f := method(string(line))
	if len(p.names) < maxNames && len(line) <= longestFrame {
		p.names[string(line)] = f
	}
	return f
}

// Bounds on the frames that are kept once.
const (
	maxNames     = 8192
	longestFrame = 512
)

// stateOf is one of java.lang.Thread.State's, "" for anything else.
func stateOf(text []byte) string {
	word, _, _ := bytes.Cut(text, []byte{' '})
	for _, state := range []string{"NEW", "RUNNABLE", "BLOCKED", "WAITING", "TIMED_WAITING", "TERMINATED"} {
		if state == string(word) {
			return state
		}
	}
	return ""
}

// flush passes the thread on.
func (p *parser) flush() {
	if p.begun && p.java {
		p.threads++
		p.fn(&p.current)
	}
	p.begun = false
}

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
