package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/replay/sim/server"
)

// A minimal end-to-end calibration: an endpoint in a separate process, a client
// that drives it, and a comparison of their times.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no clock that processes share")
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "calibration.json")
	cmd := moontide(dir, "calibrate", "--quick", "--json", "--out", out)
	cmd.Env = append(cmd.Env, "TMPDIR="+mkdir(t, dir, "tmp"))
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	agrees(t, "calibration.json", string(text))
	var got bench.Calibration
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	kept, err := bench.LoadCalibration(out)
	if err != nil || !kept.For(bench.ThisMachine()) || kept.Range != got.Range || !kept.Taken.Equal(got.Taken) {
		t.Errorf("it keeps %+v, %v", kept, err)
	}
	if got.Stamps != replay.KernelStamps || len(got.Points) != len(bench.QuickLadders()) {
		t.Fatalf("%d loads, stamps by the %s", len(got.Points), got.Stamps)
	}
	for _, p := range got.Points {
		if p.Lost != 0 {
			t.Errorf("%v: %d lost", p.Load, p.Lost)
		}
		if p.TTFT.Count != p.Requests || p.ITL.Count != p.Requests*(p.OSL-1) || p.ClientLag.Count != p.Requests {
			t.Errorf("%v: %d first tokens, %d gaps, %d sends", p.Load, p.TTFT.Count, p.ITL.Count, p.ClientLag.Count)
		}
		for _, s := range []bench.Spread{p.TTFT, p.ITL} {
			if s.MedianMS < 0 || s.MedianMS > s.P99MS || s.P99MS > s.MaxMS || s.MaxMS == 0 {
				t.Errorf("%v: errors of %+v", p.Load, s)
			}
		}
		for _, w := range []bench.Work{p.Client, p.Server} {
			if w.MemoryMB < 1 || p.Kind == bench.Streams && (w.Cores <= 0 || w.PerEvent <= 0) {
				t.Errorf("%v: work of %+v", p.Load, w)
			}
		}
		if p.Kind == bench.Streams && (p.Streams != p.Requests || p.EventRate <= 0) {
			t.Errorf("%v: %d streams, %v events/s", p.Load, p.Streams, p.EventRate)
		}
	}
	if left := files(t, dir); len(left) != 2 { // the result, and the empty tmp
		t.Errorf("it leaves %v", left)
	}
}

func TestCalibrateMisuse(t *testing.T) {
	t.Parallel()
	if r := try(t, t.TempDir(), "", "calibrate", "x"); r.status != exitMisused || !strings.Contains(r.err, "takes no argument") {
		t.Errorf("exit status %d\n%s", r.status, r.err)
	}
}

// A run reports its position in the range of this machine, and no position if
// the range is another machine's.
func TestReplaySaysWhereInTheRange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", `{"timestamp": 0, "input_length": 20, "output_length": 1}`+"\n")
	kept := &bench.Calibration{
		Taken: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Machine: bench.ThisMachine(),
		Range: runfile.Range{Streams: 100, EventsPerSecond: 100, RequestsPerSecond: 50},
	}
	replayed := func() string {
		cmd := moontide(dir, "replay", "t.jsonl", "--out", "run")
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+dir, "HOME="+dir, "LocalAppData="+dir)
		out, _ := cmd.Output()
		os.RemoveAll(filepath.Join(dir, "run"))
		return string(out)
	}
	if out := replayed(); strings.Contains(out, "alibrated") {
		t.Errorf("without a calibration:\n%s", out)
	}
	path := filepath.Join(dir, "moontide", "calibration.json")
	if runtime.GOOS == "darwin" {
		path = filepath.Join(dir, "Library", "Caches", "moontide", "calibration.json")
	}
	if err := kept.Save(path); err != nil {
		t.Fatal(err)
	}
	want := "Calibrated: inside the range that was calibrated on this machine on 2026-11-21: peak of 1 streams of 100 (1 %), 1 events/s of 100 (1 %), 1 requests/s of 50 (2 %)."
	if out := replayed(); !strings.Contains(unwrapped(out), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	kept.Machine.CPU = "another"
	if err := kept.Save(path); err != nil {
		t.Fatal(err)
	}
	if out := replayed(); strings.Contains(out, "Calibrated: ") || !strings.Contains(out, "Note: the client is not calibrated on this machine") {
		t.Errorf("with another machine's calibration:\n%s", out)
	}
}

// An endpoint exits with its parent, however the parent ended.
func TestServeUntilInputEnds(t *testing.T) {
	t.Parallel()
	cmd := moontide(t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--json", "--"+untilInputEndsFlag)
	endpoint, err := bench.StartEndpoint(cmd)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(endpoint.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := endpoint.Close(); err != nil { // closes its standard input
		t.Error(err)
	}
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("its connection is still there, with %d bytes", n)
	}
}

// An endpoint that ends reports the latencies of its answers as it wrote them.
func TestServeSummary(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--json"}} {
		cmd := moontide(t.TempDir(), append(words("serve --listen 127.0.0.1:0 --until-input-ends --model m"), flags...)...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out, messages bytes.Buffer
		started, writer := io.Pipe()
		cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&messages, writer)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(started).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, started)
		url := regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
		if r := try(t, t.TempDir(), "", "bench", "--url", url, "--isl", "10", "--osl", "5", "--concurrency", "2", "--num-prompts", "4"); !r.measured() {
			t.Fatalf("exit status %d\n%s", r.status, r.err)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if flags == nil {
			if text := messages.String(); !regexp.MustCompile(`served \d requests and \d\d output tokens; 0 requests aborted\n`).MatchString(text) || !strings.Contains(text, "ITL  as written (ms): mean ") {
				t.Errorf("it says\n%s", text)
			}
			continue
		}
		var summary server.Summary
		last := out.Bytes()[bytes.IndexByte(out.Bytes(), '\n')+1:]
		if err := json.Unmarshal(last, &summary); err != nil || summary.Completed < 4 || summary.OutputTokens < 20 || summary.ITL.MeanMS <= 0 {
			t.Errorf("%v: it prints %s", err, out.Bytes())
		}
	}
}

// An endpoint that does not start reports the reason.
func TestStartEndpointFails(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"listen: tcp": {"serve", "--listen", "127.0.0.1:999999", "--json"},
		"EOF":         {"version"},
		"invalid":     {"synth", "--isl", "10", "--osl", "1", "-n", "1", "--no-such-flag"},
	} {
		if e, err := bench.StartEndpoint(moontide(t.TempDir(), args...)); err == nil {
			e.Close()
			t.Errorf("%s: it starts", name)
		}
	}
}
