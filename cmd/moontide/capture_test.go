package main

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// A capture that is killed leaves a trace of all rows but those of the last second. While
// the disk is full, traffic goes on, and what is lost is counted.
func TestCaptureSurvives(t *testing.T) {
	if testing.Short() {
		t.Skip("rows are flushed once a second")
	}
	t.Parallel()
	dir := t.TempDir()
	limited := moontide(dir, "capture", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--upstream", serveFast(t), "-o", "t.jsonl.zst")
	limited.Args = append([]string{"sh", "-c", `ulimit -S -f 8; exec "$0" "$@"`, limited.Path}, limited.Args[1:]...)
	limited.Path, _ = exec.LookPath("sh")
	line, talk := startChild(t, limited)
	metrics := strings.Fields(line)[3]
	line, _ = bufio.NewReader(talk).ReadString('\n')
	url := strings.Fields(line)[2]
	count := func(name string) int {
		page := get(t, metrics)
		match := regexp.MustCompile(`(?m)^moontide_capture_` + name + ` (\d+)$`).FindStringSubmatch(page)
		if match == nil {
			return 0
		}
		n, _ := strconv.Atoi(match[1])
		return n
	}
	sent := 0
	send := func() {
		must(t, dir, "replay", absolute(t, root+"/traces/conversation.jsonl"), "--limit", "60", "--speedup", "1000", "--url", url, "--seed", strconv.Itoa(sent))
		sent += 60
	}
	for send(); count("rows_total") < 60; { // all of it is flushed
		<-time.After(10 * time.Millisecond)
	}
	for lost := `lost_rows_total\{reason="writing"\}`; count(lost) == 0; {
		send()
	}
	limited.Process.Kill()
	limited.Wait()
	if text := must(t, dir, "check", "t.jsonl.zst"); !strings.Contains(text.out+text.err, "rows") {
		t.Error(text)
	}
}

// What cannot be captured is refused before anything is written.
func TestCaptureMisuse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "there.jsonl"), nil, 0o600)
	for name, tc := range map[string]struct {
		args   string
		status int
		text   string
	}{
		"no upstream":        {"-o t.jsonl", 2, "--upstream is missing"},
		"no file":            {"--upstream http://127.0.0.1:1", 2, "-o is missing"},
		"a file that exists": {"--upstream http://127.0.0.1:1 -o there.jsonl --listen 127.0.0.1:0", 1, "exists"},
		"credentials":        {"--upstream http://user:secret@127.0.0.1 -o t.jsonl", 2, "without user"},
		"a strange sample":   {"--upstream http://127.0.0.1:1 -o t.jsonl --sample 0.1", 2, "not a share such as 1/10"},
		"a strange limit":    {"--upstream http://127.0.0.1:1 -o t.jsonl --rotate often", 2, "neither a time"},
		"a strange size":     {"--upstream http://127.0.0.1:1 -o t.jsonl --memory 5", 2, "not a size"},
		"no tokenizer":       {"--upstream http://127.0.0.1:1 -o t.jsonl --tokenizer none.json", 1, "none.json"},
	} {
		r := try(t, dir, "", append([]string{"capture"}, strings.Fields(tc.args)...)...)
		if r.status != tc.status || !strings.Contains(r.err, tc.text) || strings.Contains(r.err, "secret") {
			t.Errorf("%s: status %d, %s", name, r.status, r.err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "t.jsonl")); err == nil {
		t.Error("a trace was begun")
	}
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
