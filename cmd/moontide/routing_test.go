package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"moontide/replay/runfile"
)

// A mix draws the models of sessions and rows from the seed, whatever the endpoint
// and the part of the trace. The report has the share and metrics of each.
func TestMixOfModels(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t, "--model", "base", "--model", `lora,"a"`), t.TempDir()
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 40, "output_length": 2, "hash_ids": [%d]`, i, i%5)
		if i%4 != 0 {
			fmt.Fprintf(&text, `, "session_id": "s%d"`, i%7)
		}
		text.WriteString("}\n")
	}
	write(t, dir, "t.jsonl", text.String())
	replay := []string{"replay", "t.jsonl", "--seed", "3", "--model", `base=1,lora,"a"=1`, "--out"} // a name with a comma is no part of a mix
	if r := try(t, dir, "", append(replay, "no", "--url", url)...); r.status != exitFailed || !strings.Contains(r.err, "--model") {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	replay[5] = "base=3,other=1"
	if r := try(t, dir, "", append(replay, "no", "--url", url)...); r.status != exitFailed || !strings.Contains(r.err, `does not serve the model "other"`) {
		t.Errorf("exit status %d: %s", r.status, r.err)
	}
	url = serveFast(t, "--model", "base", "--model", "other")
	out := must(t, dir, append(replay, "served", "--url", url)...)
	must(t, dir, append(replay, "embedded", "--limit", "30")...)
	served, embedded := recordsOf(t, filepath.Join(dir, "served")), recordsOf(t, filepath.Join(dir, "embedded"))
	counts, ofSession := map[string]int{}, map[string]string{}
	for row, rec := range served {
		counts[rec.Model]++
		if other, same := embedded[row]; same && other.Model != rec.Model {
			t.Errorf("row %d asks for %s and %s", row, rec.Model, other.Model)
		}
		if id := rec.SessionID; id != "" {
			if known := ofSession[id]; known != "" && known != rec.Model {
				t.Errorf("session %s asks for %s and %s", id, known, rec.Model)
			}
			ofSession[id] = rec.Model
		}
	}
	if len(served) != 40 || len(embedded) != 30 || counts["base"]+counts["other"] != 40 || len(counts) != 2 {
		t.Errorf("%d and %d records, %v", len(served), len(embedded), counts)
	}
	if !strings.Contains(out, "By model") || !strings.Contains(out, "75.0 %") {
		t.Errorf("no shares in\n%s", out)
	}
	var summary struct {
		Moontide struct {
			Models []struct {
				Model         string
				Requests      int
				Configured    float64 `json:"configured_share"`
				MedianTTFT    float64 `json:"median_ttft_ms"`
				P99TPOT       float64 `json:"p99_tpot_ms"`
				Share, Failed float64
			}
		}
	}
	if err := json.Unmarshal([]byte(must(t, dir, "report", "--json", "served")), &summary); err != nil {
		t.Fatal(err)
	}
	for i, m := range summary.Moontide.Models {
		if m.Requests != counts[m.Model] || m.Share != float64(counts[m.Model])/40 || m.Configured != []float64{0.75, 0.25}[i] || m.MedianTTFT <= 0 {
			t.Errorf("%+v, of %v", m, counts)
		}
	}
	if target := runOfFolder(t, dir+"/served").Target; target.Model != "base=3,other=1" || len(target.Models) != 2 {
		t.Errorf("%+v", target)
	}
}

// Rows name their models and priorities. A model that the endpoint does not serve is
// an error with the line that names it.
func TestModelsOfTheTrace(t *testing.T) {
	t.Parallel()
	url, dir := serveFast(t, "--model", "base", "--model", "lora"), t.TempDir()
	row := `{"timestamp": 0, "input_length": 40, "output_length": 2%s}` + "\n"
	rows := func(extras ...string) (text string) {
		for _, extra := range extras {
			text += fmt.Sprintf(row, extra)
		}
		return text
	}
	write(t, dir, "t.jsonl", rows(`, "model": "lora", "priority": 2`, "", `, "model": "base"`))
	must(t, dir, "replay", "t.jsonl", "--url", url, "--model-from-trace", "--priority-from-trace", "--model", "base", "--out", "run")
	for row, model := range []string{"lora", "base", "base"} {
		if rec := recordsOf(t, filepath.Join(dir, "run"))[row]; rec.Model != model || rec.Class != "" {
			t.Errorf("row %d asks for %q: %s", row, rec.Model, rec.Error)
		}
	}
	if target := runOfFolder(t, dir+"/run").Target; target.ModelText() != "(as in the trace), else base" || !target.PriorityFromTrace {
		t.Errorf("%+v", target)
	}
	for want, text := range map[string]string{
		`does not serve the model "tpyo" in line 3 of the trace`:                          rows(`, "model": "base", "priority": 0`, `, "model": "lora"`, `, "model": "tpyo"`),
		"t.jsonl:2: the row's priority is not an integer: \"high\"":                       rows(`, "model": "base"`, `, "priority": "high"`),
		"replay: --model-from-trace finds no model: no row has the key model with a name": rows(`, "priority": 1`),
		"replay: --priority-from-trace finds no priority: no row has the key priority":    rows(`, "model": "base"`),
	} {
		write(t, dir, "t.jsonl", text)
		r := try(t, dir, "", "replay", "t.jsonl", "--url", url, "--model-from-trace", "--priority-from-trace", "--out", "no")
		if r.status == exitDone || !strings.Contains(unwrapped(r.err), want) {
			t.Errorf("exit status %d: %s", r.status, r.err)
		}
	}
}

// gateway gives a session a cookie and a header with its first answer and counts the
// later requests that lack them.
type gateway struct {
	mu          sync.Mutex
	turns       map[string]int
	lacking     int
	otherHeader bool
}

func (g *gateway) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		fmt.Fprint(out, `{"data": [{"id": "m"}]}`)
		return
	}
	io.Copy(io.Discard, r.Body)
	g.mu.Lock()
	defer g.mu.Unlock()
	session := r.Header.Get("X-Conversation")
	g.otherHeader = g.otherHeader || r.Header.Get("X-Session-Id") != ""
	if g.turns[session]++; session != "" && g.turns[session] == 1 {
		out.Header().Set("Set-Cookie", "route=hush-cookie-"+session+"; Path=/; HttpOnly")
		out.Header().Set("X-Worker", "hush-worker-"+session)
	} else if session != "" {
		cookie, err := r.Cookie("route")
		if err != nil || cookie.Value != "hush-cookie-"+session || r.Header.Get("X-Worker") != "hush-worker-"+session {
			g.lacking++
		}
	}
	if session == "s2" && g.turns[session] == 3 {
		http.Error(out, `no room on hush-worker-s2 for hush-cookie-s2`, http.StatusInternalServerError)
		return
	}
	out.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(out, `data: {"choices": [{"text": " a", "finish_reason": "length"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`+"\n\ndata: [DONE]\n\n")
}

// Later turns carry what the gateway gave with the first answer of their session. It
// is in no output and no file of the run.
func TestEchoThroughAGateway(t *testing.T) {
	t.Parallel()
	g, dir := &gateway{turns: map[string]int{}}, t.TempDir()
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	write(t, dir, "t.jsonl", strings.ReplaceAll(rowsOfSessions(), `"session_id": "`, `"session_id": "s`))
	r := try(t, dir, "", "replay", "t.jsonl", "--url", s.URL, "--session-header", "X-Conversation", "--echo-cookie", "route", "--echo-header", "x-worker", "--echo-header", "X-Absent", "--out", "run")
	if !r.measured() || g.lacking > 0 || g.otherHeader || g.turns["s0"] != 4 || g.turns["s2"] != 3 {
		t.Errorf("exit status %d, %d requests lack it, %v\n%s%s", r.status, g.lacking, g.turns, r.out, r.err)
	}
	for _, want := range []string{
		"the router's header x-worker was sent with 7 of 7 later turns; 0 first answers had none.",
		"the router's cookie route was sent with 7 of 7 later turns; 0 first answers had none.",
		"the router's header X-Absent was sent with 0 of 7 later turns; 3 first answers had none.",
	} {
		if !strings.Contains(unwrapped(r.out), want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	if echoed := runOfFolder(t, dir+"/run").Echoed; len(echoed) != 3 || echoed[0] != (runfile.Echoed{Name: "x-worker", With: 7}) {
		t.Errorf("%+v", echoed)
	}
	for _, file := range files(t, filepath.Join(dir, "run")) {
		text, err := os.ReadFile(filepath.Join(dir, "run", file))
		if err != nil || strings.Contains(string(text), "hush") {
			t.Errorf("%s has a value of the router (%v)", file, err)
		}
	}
	if strings.Contains(r.out+r.err, "hush") {
		t.Errorf("a value of the router is in the output\n%s%s", r.out, r.err)
	}
}

// A resumed run draws the same models. What the router gave before is not known: a
// note says so, and the sessions in progress go on without it.
func TestRoutingOfAResumedRun(t *testing.T) {
	t.Parallel()
	g, dir := &gateway{turns: map[string]int{}}, t.TempDir()
	s := httptest.NewServer(g)
	t.Cleanup(s.Close)
	write(t, dir, "t.jsonl", strings.ReplaceAll(rowsOfSessions(), `"session_id": "`, `"session_id": "r`))
	r := try(t, dir, "", "replay", "t.jsonl", "--url", s.URL, "--model", "m=1,n=1", "--session-header", "X-Conversation", "--echo-cookie", "route", "--out", "run")
	whole, folder := recordsOf(t, filepath.Join(dir, "run")), filepath.Join(dir, "run")
	if len(whole) != 12 {
		t.Fatalf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	text, err := os.ReadFile(filepath.Join(folder, runfile.RequestsFile))
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, runfile.RequestsFile, strings.Join(strings.SplitAfter(string(text), "\n")[:6], ""))
	run := runOfFolder(t, folder)
	run.Stopped = true
	if err := runfile.WriteJSON(filepath.Join(folder, runfile.RunFile), run); err != nil {
		t.Fatal(err)
	}
	r = try(t, dir, "", "replay", "t.jsonl", "--resume", "run")
	if !strings.Contains(unwrapped(r.out), "values that the router gave before the run was resumed are not kept") {
		t.Errorf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	resumed := recordsOf(t, folder)
	for row, rec := range whole {
		if resumed[row].Model != rec.Model {
			t.Errorf("row %d asks for %s, and %s when the run is resumed", row, rec.Model, resumed[row].Model)
		}
	}
	if echoed := runOfFolder(t, folder).Echoed; len(resumed) != 12 || len(echoed) != 1 || echoed[0].With != 9 || echoed[0].Missing == 0 || g.lacking == 0 {
		t.Errorf("%d records, %+v, %d later turns lack the cookie", len(resumed), echoed, g.lacking)
	}
}
