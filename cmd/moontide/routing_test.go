package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moontide/replay/runfile"
)

// serveModels answers requests for some models with a token each.
func serveModels(t *testing.T, models ...string) (url string) {
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			var list struct {
				Data []map[string]string `json:"data"`
			}
			for _, name := range models {
				list.Data = append(list.Data, map[string]string{"id": name})
			}
			json.NewEncoder(out).Encode(list)
			return
		}
		var asked struct{ Model string }
		if json.NewDecoder(r.Body).Decode(&asked); !slices.Contains(models, asked.Model) {
			http.Error(out, fmt.Sprintf("the model %q does not exist", asked.Model), http.StatusNotFound)
			return
		}
		out.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(out, `data: {"choices": [{"text": " a", "finish_reason": "length"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A mix draws the models of sessions and rows from the seed alone: for any endpoint and part
// of the trace, and in a resumed run. The report has the share and metrics of each.
func TestMixOfModels(t *testing.T) {
	t.Parallel()
	url, dir := serveModels(t, "base", "other"), t.TempDir()
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 40, "output_length": 2, "hash_ids": [%d]`, i, i%5)
		if i%4 != 0 {
			fmt.Fprintf(&text, `, "session_id": "s%d"`, i%7)
		}
		text.WriteString("}\n")
	}
	write(t, dir, "t.jsonl", text.String())
	all := try(t, dir, "", "replay", "t.jsonl", "--seed", "3", "--model", "base=3,other=1", "--url", url, "--out", "all")
	folder := filepath.Join(dir, "all")
	whole, ofSession, counts := recordsOf(t, folder), map[string]string{}, map[string]int{}
	if len(whole) != 40 || !strings.Contains(all.out, "By model") || !strings.Contains(all.out, "75.0 %") {
		t.Fatalf("%d records\n%s%s", len(whole), all.out, all.err)
	}
	for row, rec := range whole {
		counts[rec.Model]++
		if known := ofSession[rec.SessionID]; rec.SessionID != "" && known != "" && known != rec.Model {
			t.Errorf("session %s asks for %s and in row %d for %s", rec.SessionID, known, row, rec.Model)
		}
		ofSession[rec.SessionID] = rec.Model
	}
	var summary struct {
		Moontide struct {
			Models []struct {
				Model         string
				Requests      int
				Configured    float64 `json:"configured_share"`
				MedianTTFT    float64 `json:"median_ttft_ms"`
				Share, Failed float64
			}
		}
	}
	if err := json.Unmarshal([]byte(try(t, dir, "", "report", "--json", "all").out), &summary); err != nil {
		t.Fatal(err)
	}
	for i, m := range summary.Moontide.Models {
		if m.Requests != counts[m.Model] || m.Share != float64(counts[m.Model])/40 || m.Configured != []float64{0.75, 0.25}[i] || m.MedianTTFT <= 0 {
			t.Errorf("%+v, of %v", m, counts)
		}
	}
	run := runOfFolder(t, folder)
	if run.Target.Model != "base=3,other=1" || len(run.Target.Models) != 2 || len(counts) != 2 {
		t.Errorf("%+v, %v", run.Target, counts)
	}
	write(t, folder, runfile.RequestsFile, strings.Join(strings.SplitAfter(readFile(t, filepath.Join(folder, runfile.RequestsFile)), "\n")[:6], ""))
	run.Stopped = true
	if err := runfile.WriteJSON(filepath.Join(folder, runfile.RunFile), run); err != nil {
		t.Fatal(err)
	}
	try(t, dir, "", "replay", "t.jsonl", "--resume", "all")
	resumed := recordsOf(t, folder)
	for row, rec := range whole {
		if resumed[row].Model != rec.Model {
			t.Errorf("row %d asks for %s, and %s when the run is resumed", row, rec.Model, resumed[row].Model)
		}
	}
}

// Rows name their models. A model that the endpoint does not serve is an error with the
// line that names it.
func TestModelsOfTheTrace(t *testing.T) {
	t.Parallel()
	url, dir := serveModels(t, "base", "lora"), t.TempDir()
	rows := func(extras ...string) (text string) {
		for _, extra := range extras {
			text += fmt.Sprintf(`{"timestamp": 0, "input_length": 40, "output_length": 2%s}`+"\n", extra)
		}
		return text
	}
	write(t, dir, "t.jsonl", rows(`, "model": "lora"`, "", `, "model": "base"`))
	try(t, dir, "", "replay", "t.jsonl", "--url", url, "--set", "model-from-trace=true", "--model", "base", "--out", "run")
	for row, model := range []string{"lora", "base", "base"} {
		if rec := recordsOf(t, filepath.Join(dir, "run"))[row]; rec.Model != model || rec.Class != "" {
			t.Errorf("row %d asks for %q: %s", row, rec.Model, rec.Error)
		}
	}
	if run := runOfFolder(t, dir+"/run"); run.ModelText() != "(as in the trace), else base" {
		t.Errorf("%+v", run.Target)
	}
	for want, text := range map[string]string{
		`does not serve the model "tpyo" in line 3 of the trace`:                              rows(`, "model": "base"`, `, "model": "lora"`, `, "model": "tpyo"`),
		"replay: --set model-from-trace finds no model: no row has the key model with a name": rows(`, "priority": 1`),
	} {
		write(t, dir, "t.jsonl", text)
		r := try(t, dir, "", "replay", "t.jsonl", "--url", url, "--set", "model-from-trace=true", "--out", "no")
		if r.status == exitDone || !strings.Contains(unwrapped(r.err), want) {
			t.Errorf("exit status %d: %s", r.status, r.err)
		}
	}
}
