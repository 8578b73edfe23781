package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/replay/capture"
	"moontide/trace"
)

// A capture of a replay has its requests in their order, with their lengths and sharing.
func TestCaptureOfReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("it replays a trace at its original timing")
	}
	t.Parallel()
	dir := t.TempDir()
	url, end := capturing(t, dir, "--upstream", serveFast(t), "-o", "t.jsonl.zst")
	must(t, dir, "replay", absolute(t, root+"/traces/conversation.jsonl"), "--limit", "60", "--speedup", "1000", "--max-concurrency", "1", "--url", url, "--out", "run")
	end()
	sent, seen := rowsOfTrace(t, filepath.Join(dir, "run", "requests.jsonl"), 60), rowsOfTrace(t, filepath.Join(dir, "t.jsonl.zst"), 1000)
	probes := len(seen) - len(sent)
	if seen = seen[max(probes, 0):]; len(seen) != len(sent) { // the probe comes first
		t.Fatalf("%d rows of %d", len(seen), len(sent))
	}
	slices.SortFunc(sent, func(a, b trace.Request) int { return cmp.Compare(sentAt(t, a), sentAt(t, b)) })
	shared := map[uint64]uint64{}
	for i, r := range seen {
		if r.InputLength != sent[i].InputLength || r.OutputLength != sent[i].OutputLength || len(r.HashIDs) != len(sent[i].HashIDs) {
			t.Fatalf("row %d: ISL %d, OSL %d, %d blocks, sent %d, %d, %d", i, r.InputLength, r.OutputLength, len(r.HashIDs), sent[i].InputLength, sent[i].OutputLength, len(sent[i].HashIDs))
		}
		for k, id := range sent[i].HashIDs {
			if before, ok := shared[id]; ok && before != r.HashIDs[k] {
				t.Fatalf("row %d: block %d has another id than before", i, k)
			}
			shared[id] = r.HashIDs[k]
		}
		if _, marked := r.Raw("estimated"); marked {
			t.Errorf("row %d: %s", i, r.Extra)
		}
	}
	if ids := slices.Compact(slices.Sorted(maps.Values(shared))); len(ids) != len(shared) {
		t.Errorf("%d blocks have %d ids", len(shared), len(ids))
	}
	must(t, dir, "check", "t.jsonl.zst")
}

func sentAt(t *testing.T, r trace.Request) (ms float64) {
	raw, _ := r.Raw("sent_ms")
	if err := json.Unmarshal([]byte(raw), &ms); err != nil {
		t.Fatalf("%v: %s", err, r.Extra)
	}
	return ms
}

// A capture that is killed leaves a readable trace of the rows that were flushed.
func TestCaptureKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("rows are flushed once a second")
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := moontide(dir, "capture", "--listen", "127.0.0.1:0", "--upstream", serveFast(t), "-o", "t.jsonl.zst")
	line, _ := startChild(t, cmd)
	must(t, dir, "replay", absolute(t, root+"/traces/conversation.jsonl"), "--limit", "60", "--speedup", "1000", "--url", strings.Fields(line)[2])
	rows := ""
	for until := time.Now().Add(time.Minute); strings.Count(rows, "\n") < 60; { // for a test that fails
		rows = try(t, dir, "", "convert", "t.jsonl.zst", "-o", "-").out // an error before the first
		if time.Now().After(until) {
			t.Fatalf("%d rows are flushed after a minute", strings.Count(rows, "\n"))
		}
	}
	endChild(cmd)
	left := must(t, dir, "convert", "t.jsonl.zst", "-o", "-")
	if !strings.HasPrefix(left, rows) { // there may have been another flush
		t.Errorf("%d bytes, %d before", len(left), len(rows))
	}
	must(t, dir, "convert", "t.jsonl.zst", "--sort", "-o", "sorted.jsonl.zst")
	if sorted := must(t, dir, "convert", "sorted.jsonl.zst", "-o", "-"); len(sorted) != len(left) {
		t.Errorf("%d bytes when sorted, %d before", len(sorted), len(left))
	}
}

// Health and counts are served beside the traffic, and nothing else is.
func TestCaptureMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := moontide(dir, "capture", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--upstream", serveFast(t), "-o", "t.jsonl")
	line, talk := startChild(t, cmd)
	metrics := regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
	line, _ = bufio.NewReader(talk).ReadString('\n')
	url := regexp.MustCompile(`http://[0-9.:]+`).FindString(line)
	complete(t, url)
	complete(t, url)
	for path, want := range map[string]string{
		"/healthz": "ok\n", "/metrics": "\nmoontide_capture_requests_total 2\n", "/v1/completions": "not found",
	} {
		answer, err := http.Get(metrics + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// While the disk is full, here for any file above 4 or 8 KB, traffic continues. Lost rows are
// counted, and the others are in complete files.
func TestCaptureDiskFull(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("it replays requests to a process with limits")
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := moontide(dir, "capture", "--listen", "127.0.0.1:0", "--upstream", serveFast(t), "-o", "t.jsonl")
	line, talk := startChild(t, limited(cmd, "-f 8"))
	send := func(rows string) {
		must(t, dir, "replay", absolute(t, root+"/traces/conversation.jsonl"), "--limit", rows, "--speedup", "1000", "--url", strings.Fields(line)[2])
	}
	send("2")
	for saved := []byte(nil); len(saved) == 0; {
		saved, _ = os.ReadFile(filepath.Join(dir, "t.jsonl"))
	}
	send("100")
	cmd.Process.Signal(os.Interrupt)
	said, _ := io.ReadAll(talk)
	if err := cmd.Wait(); err == nil {
		t.Error("exit status 0")
	}
	count := func(pattern string) int {
		found := regexp.MustCompile(`(\d+) ` + pattern).FindSubmatch(said)
		if found == nil {
			t.Fatalf("%s not in %s", pattern, said)
		}
		n, _ := strconv.Atoi(string(found[1]))
		return n
	}
	requests, rows, lost := count("requests"), count("rows? in"), count("rows? lost: the file could not be written")
	there := 0
	for _, path := range regexp.MustCompile(`t[-0-9]*\.jsonl`).FindAllString(regexp.MustCompile(`rows? in (.*)`).FindString(string(said)), -1) {
		there += len(rowsOfTrace(t, filepath.Join(dir, path), 1000))
	}
	if requests < 102 || rows+lost != requests || there != rows || rows == 0 || lost == 0 {
		t.Errorf("%d requests, %d rows, %d in files, %d lost\n%s", requests, rows, there, lost, said)
	}
}

// The memory of a capture stays within its flag, here with bodies of six times that size at
// a time.
func TestCaptureMemory(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it sends 400 MB to a process whose peak memory the system tells")
	}
	t.Parallel()
	const clients, size, limit = 16, 8 << 20, 64 << 20
	text := strings.Repeat("the tide rises ", size/15)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprintf(z, `{"choices":[{"text":%q}]}`, text)
	z.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(zipped.Bytes())
	}))
	defer server.Close()
	dir := t.TempDir()
	cmd := moontide(dir, "capture", "--listen", "127.0.0.1:0", "--upstream", server.URL, "-o", "t.jsonl", "--memory", "64MiB")
	line, _ := startChild(t, cmd)
	url := strings.Fields(line)[2]
	peak := func() (bytes int) {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		fmt.Sscanf(string(regexp.MustCompile(`VmHWM:.*`).Find(status)), "VmHWM: %d kB", &bytes)
		return bytes << 10
	}
	send := func(body string, gzipped bool) {
		r, _ := http.NewRequest("POST", url+"/v1/completions", strings.NewReader(body))
		if gzipped {
			r.Header.Set("Content-Encoding", "gzip")
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	send("{}", false)
	before := peak()
	var sending sync.WaitGroup
	for i := range clients {
		sending.Go(func() {
			for range 3 {
				if i%2 == 0 {
					send(`{"prompt":"`+text+`"}`, false)
				} else {
					send(zipped.String(), true)
				}
			}
		})
	}
	sending.Wait()
	if grown := peak() - before; grown > limit {
		t.Errorf("%d MiB more, with a limit of %d", grown>>20, limit>>20)
	}
}

// Whoever opens connections and says nothing neither keeps others from being served nor
// takes the files that the capture writes.
func TestCaptureFewOpenFiles(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("rows are flushed once a second, with a limit on open files")
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := moontide(dir, "capture", "--listen", "127.0.0.1:0", "--upstream", serveFast(t), "-o", "t.jsonl", "--rotate", "0.01KiB")
	line, talk := startChild(t, limited(cmd, "-n 120"))
	url := strings.Fields(line)[2]
	for range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for len(files(t, dir)) < 3 { // the key and two files of the trace
		complete(t, url)
	}
	cmd.Process.Signal(os.Interrupt)
	said, _ := io.ReadAll(talk)
	if err := cmd.Wait(); err != nil || bytes.Contains(said, []byte("warning")) {
		t.Errorf("%v: %s", err, said)
	}
}

// A limit of rotation may be a time, a size, or both.
func TestRotationLimits(t *testing.T) {
	for limits, want := range map[string]capture.FilesConfig{
		"90m": {Every: 90 * time.Minute}, "1.5KiB": {Size: 1536},
		"1h,1GiB": {Every: time.Hour, Size: 1 << 30}, "1GiB,1h": {Every: time.Hour, Size: 1 << 30},
	} {
		every, size, err := parseRotation(limits)
		if err != nil || every != want.Every || size != want.Size {
			t.Errorf("%s: %v, %d, %v", limits, every, size, err)
		}
	}
}

// complete asks an endpoint for two tokens.
func complete(t *testing.T, url string) {
	t.Helper()
	response, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"model":"sim","prompt":[1,2,3],"max_tokens":2}`))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, response.Body)
	response.Body.Close()
}

// capturing runs moontide capture in a folder. end interrupts it and waits.
func capturing(t *testing.T, dir string, args ...string) (url string, end func()) {
	t.Helper()
	cmd := moontide(dir, append([]string{"capture", "--listen", "127.0.0.1:0"}, args...)...)
	line, talk := startChild(t, cmd)
	words := strings.Fields(line)
	if len(words) < 3 {
		t.Fatalf("capture says %q", line)
	}
	return words[2], func() {
		t.Helper()
		cmd.Process.Signal(os.Interrupt)
		rest, _ := io.ReadAll(talk)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, rest)
		}
	}
}
