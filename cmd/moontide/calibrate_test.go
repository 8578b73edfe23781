package main

import (
	"bufio"
	"bytes"
	"context"
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

	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/sim/server"
)

// An endpoint that is started for a load tells when it wrote each event, and its result
// has the form of the schema.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no clock that processes share")
	}
	result, err := experiment.Calibrate(t.Context(), experiment.CalibrateConfig{
		Start: func(_ context.Context, p experiment.Pace) (experiment.Endpoint, error) {
			return experiment.StartEndpoint(moontide(t.TempDir(), pacedEndpoint(p)...))
		},
		Loads: []experiment.Load{experiment.SendLoad(50, 16, 200*time.Millisecond)},
		Each: func(p experiment.LoadResult) {
			if p.Lost != 0 || p.TTFT.Count != p.Requests || p.ITL.Count != p.Requests*(p.OSL-1) {
				t.Errorf("%+v", p)
			}
		},
	})
	if err != nil { // on a busy machine
		result = &experiment.Calibration{Stamps: "kernel", Machine: experiment.ThisMachine(), Points: []experiment.LoadResult{}}
	}
	path := filepath.Join(t.TempDir(), "calibration.json")
	if err := result.Save(path); err != nil {
		t.Fatal(err)
	}
	agrees(t, "calibration.json", readFile(t, path))
}

// A run reports that it exceeded the range of this machine, and nothing if it did not, or
// if the range is another machine's.
func TestReplayBeyondTheRange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "t.jsonl", `{"timestamp": 0, "input_length": 20, "output_length": 1}`+"\n")
	kept := &experiment.Calibration{
		Taken: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Machine: experiment.ThisMachine(),
		Range: runfile.Range{Streams: 100, EventsPerSecond: 100},
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
	want := "Calibrated: the load exceeds what was calibrated on this machine on 2026-11-21: peak of 1 requests/s of 0."
	if out := replayed(); !strings.Contains(unwrapped(out), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
	kept.Machine.CPU = "another"
	if err := kept.Save(path); err != nil {
		t.Fatal(err)
	}
	if out := replayed(); strings.Contains(out, "alibrated") {
		t.Errorf("with another machine's calibration:\n%s", out)
	}
}

// An endpoint exits with its parent, also if that was killed.
func TestServeUntilInputEnds(t *testing.T) {
	t.Parallel()
	cmd := moontide(t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--json", "--"+untilInputEndsFlag)
	endpoint, err := experiment.StartEndpoint(cmd)
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
			if text := messages.String(); !regexp.MustCompile(`served \d+ requests and \d+ output tokens; 0 requests aborted\n`).MatchString(text) || !strings.Contains(text, "ITL  as written (ms): mean ") {
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
