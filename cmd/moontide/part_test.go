package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moontide/replay/runfile"
)

// pod returns the command of a pod of a Kubernetes Indexed Job; the pods share a volume.
func pod(dir string, index, of int, args ...string) *exec.Cmd {
	cmd := moontide(dir, args...)
	cmd.Env = append(cmd.Env, fmt.Sprint("JOB_COMPLETION_INDEX=", index), fmt.Sprint("MOONTIDE_PARTS=", of), fmt.Sprint("HOSTNAME=load-", index))
	return cmd
}

// talks starts a command and returns what it says to standard error, once it has ended.
func talks(t *testing.T, cmd *exec.Cmd) *bytes.Buffer {
	t.Helper()
	said := &bytes.Buffer{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endChild(cmd) })
	return said
}

// steadyRows are rows that arrive 20 ms apart.
func steadyRows(n int) string {
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 8, "output_length": 2, "hash_ids": [%d]}`+"\n", 20*i, i)
	}
	return rows.String()
}

// counting is an endpoint that closes reached when it gets its nth request of a replay.
func counting(t *testing.T, n int64) (url string, reached chan struct{}) {
	reached = make(chan struct{})
	var got atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"object": "list", "data": [{"id": "m"}]}`)
			return
		}
		if got.Add(1) == n {
			close(reached)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices": [{"text": " a"}]}`+"\n\n"+`data: {"choices": [{"text": " b", "finish_reason": "length"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL, reached
}

// If a part is killed, also part 1, the others end and name it, every record is whole,
// and the run is INVALID.
func TestKilledPart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			const parts, rows = 3, 100
			killed := int(seed) * (1 + random.IntN(2)) // part 1 in one of them
			url, reached := counting(t, 20+random.Int64N(rows/2))
			dir := t.TempDir()
			write(t, dir, "t.jsonl", steadyRows(rows))
			var all []*exec.Cmd
			var said []*bytes.Buffer
			for i := range parts {
				all = append(all, pod(dir, i, parts, "replay", "t.jsonl", "--url", url, "--part", "auto", "--out", "run"))
				said = append(said, talks(t, all[i]))
			}
			<-reached
			all[killed].Process.Kill()
			for i, cmd := range all {
				cmd.Wait()
				if i == killed {
					continue
				}
				name := fmt.Sprintf("part %d of %d", killed+1, parts)
				if status := cmd.ProcessState.ExitCode(); status != exitPartLost || !strings.Contains(said[i].String(), "the run has ended: "+name) {
					t.Errorf("part %d ends with %d after %s was killed:\n%s", i+1, status, name, said[i])
				}
			}
			for i := range parts {
				folder, err := runfile.Open(filepath.Join(dir, "run", fmt.Sprintf("part-%d", i+1)))
				if err != nil {
					t.Fatal(err)
				}
				records := 0
				for _, err := range folder.Records() {
					if err != nil {
						t.Error(err)
					}
					records++
				}
				if lines, reasons := folder.Damaged(); lines > 0 || records == 0 {
					t.Errorf("part %d has %d records and %d damaged ones: %v", i+1, records, lines, reasons)
				}
				folder.Close()
			}
			want := fmt.Sprintf("part %d of %d", killed+1, parts)
			if r := try(t, dir, "", "report", "run"); r.status != exitInvalid || !strings.Contains(unwrapped(r.out), "invalid "+want) {
				t.Errorf("the report ends with %d, want INVALID because of %s:\n%s%s", r.status, want, r.out, r.err)
			}
		})
	}
}

// What is wrong with how parts meet is said by each, in one sentence.
func TestPartsThatCannotMeet(t *testing.T) {
	t.Parallel()
	url, _ := counting(t, 0)
	for name, test := range map[string]struct {
		first []string // part 1 of 2, which waits; nil is none
		then  []string
		env   string
		want  string
	}{
		"two rank 0s":    {[]string{"--part", "1/2"}, []string{"--part", "1/2"}, "", "there is another part 1 of this run: it has locked run.token"},
		"wrong token":    {[]string{"--part", "1/2"}, []string{"--part", "2/2", "--rendezvous", "ADDRESS"}, "MOONTIDE_TOKEN=b", "wrong token: part 1 at ADDRESS has another MOONTIDE_TOKEN"},
		"other size":     {[]string{"--part", "1/2"}, []string{"--part", "2/3"}, "", "is of 3 parts, part 1 of 2"},
		"other flags":    {[]string{"--part", "1/2"}, []string{"--part", "2/2", "--limit", "5"}, "", "part 2 of 2 (HOST) failed: it disagrees with part 1: the flags"},
		"no such part 1": {nil, []string{"--part", "2/2", "--rendezvous", "nowhere.invalid:1", "--set", "rendezvous-timeout=1ms"}, "MOONTIDE_TOKEN=a", "part 2 of 2 did not reach part 1 within 1ms: "},
		"no part 1":      {nil, []string{"--part", "2/2", "--set", "rendezvous-timeout=1ms"}, "", "part 2 of 2 did not reach part 1 within 1ms: no token: "},
		"never arrives":  {nil, []string{"--part", "1/2", "--set", "rendezvous-timeout=1ms"}, "", "part 2 of 2 is absent: it did not arrive within 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "t.jsonl", steadyRows(10))
			var part1 struct{ Address string } // what part 1 writes beside its folder
			command := func(flags []string) *exec.Cmd {
				return moontide(dir, append([]string{"replay", "t.jsonl", "--url", url, "--out", "run"}, flags...)...)
			}
			if test.first != nil {
				talks(t, command(test.first))
				for { // until part 1 has written its address and token
					if text, _ := os.ReadFile(filepath.Join(dir, "run.token")); json.Unmarshal(text, &part1) == nil && part1.Address != "" {
						break
					}
					time.Sleep(time.Millisecond)
				}
				for i := range test.then {
					test.then[i] = strings.ReplaceAll(test.then[i], "ADDRESS", part1.Address)
				}
				test.want = strings.ReplaceAll(test.want, "ADDRESS", part1.Address)
			}
			cmd := command(test.then)
			cmd.Env = append(cmd.Env, test.env)
			r := finish(t, cmd)
			host, _, _ := strings.Cut(test.want, "HOST")
			if r.status == exitDone || !strings.Contains(r.err, host) {
				t.Errorf("exit status %d, want %q:\n%s", r.status, test.want, r.err)
			}
		})
	}
}
