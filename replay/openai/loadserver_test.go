//go:build linux

package openai

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moontide/trace/jsonscan"
)

// load configures the server of the benchmarks, a process of its own. It waits for
// all streams, writes an event to each per interval, and reports in the end when it
// wrote them.
type load struct {
	streams, tokens int
	interval        time.Duration
	lockStep        bool // all streams get an event at once
}

const loadVariable = "MOONTIDE_TEST_LOAD"

// The process is this test binary, with an environment variable.
func init() {
	text, ok := os.LookupEnv(loadVariable)
	if !ok {
		return
	}
	if err := serveLoad(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (l load) String() string {
	return fmt.Sprintf("%d %d %d %t", l.streams, l.tokens, l.interval, l.lockStep)
}

// loadServer is the running process.
type loadServer struct {
	cmd *exec.Cmd
	out *bufio.Reader
	url string
}

func startLoad(b *testing.B, l load) *loadServer {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loadVariable+"="+l.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	s := &loadServer{cmd: cmd, out: bufio.NewReader(out)}
	s.url = "http://" + s.line(b)
	return s
}

func (s *loadServer) line(b *testing.B) string {
	line, err := s.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// wrote returns the instants of all writes, those of stream 0 first.
func (s *loadServer) wrote(b *testing.B, l load) []int64 {
	instants := make([]int64, l.streams*l.tokens)
	if err := binary.Read(s.out, binary.LittleEndian, instants); err != nil {
		b.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return instants
}

// serveLoad is the process's main.
func serveLoad(text string) error {
	var l load
	if _, err := fmt.Sscan(text, &l.streams, &l.tokens, &l.interval, &l.lockStep); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	descriptors := make([]int, l.streams)
	arrived := make(chan error)
	conns := make([]net.Conn, l.streams)
	for i := range conns {
		if conns[i], err = ln.Accept(); err != nil {
			return err
		}
		go func() { arrived <- readLoadRequest(conns[i], descriptors) }()
	}
	for range conns {
		if err := <-arrived; err != nil {
			return err
		}
	}
	fmt.Println("all are here")
	instants := l.write(descriptors)
	runtime.KeepAlive(conns)
	return binary.Write(os.Stdout, binary.LittleEndian, instants)
}

// readLoadRequest reads a request, whose prompt is the stream's number.
func readLoadRequest(c net.Conn, descriptors []int) error {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return err
	}
	var body struct{ Prompt string }
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := jsonscan.Strict.Unmarshal(text, &body); err != nil {
		return err
	}
	stream, err := strconv.Atoi(body.Prompt)
	if err != nil {
		return err
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { descriptors[stream] = int(fd) })
}

// write writes all events at their times, as far as it can.
func (l load) write(descriptors []int) (instants []int64) {
	runtime.LockOSThread()
	event := []byte(inChunk(string(answers[0].stream(1))))
	first := append([]byte(streamed), event...)
	last := append(append([]byte(nil), event...), inChunk(finish+theEnd)+lastChunk...)
	instants = make([]int64, l.streams*l.tokens)
	start := sharedClock() + int64(200*time.Millisecond)
	for k := range l.tokens {
		for i, fd := range descriptors {
			due := start + int64(k)*int64(l.interval)
			if !l.lockStep {
				due += int64(i) * int64(l.interval) / int64(l.streams)
			}
			if now := sharedClock(); now < due {
				pause := unix.NsecToTimespec(max(due-now, int64(200*time.Microsecond)))
				unix.Nanosleep(&pause, nil)
			}
			text := event
			switch k {
			case 0:
				text = first
			case l.tokens - 1:
				text = last
			}
			instants[i*l.tokens+k] = sharedClock()
			unix.Write(fd, text)
		}
	}
	return instants
}

func sharedClock() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}
