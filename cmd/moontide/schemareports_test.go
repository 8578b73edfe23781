package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay/runfile"
)

// runSamples are runs that show every key and every type of value of a report.
type runSamples struct {
	dir                             string   // where commands run
	roundRobin, prefix              string   // measured
	paced, scraped, unsized, failed string   // one with a limit, with a server's metrics, with an unknown server, without an answer
	mixed                           string   // several models
	left                            string   // the client closed every request
	live                            string   // sessions with real answers
	unsizedLive                     string   // the same with an unknown server
	parts                           []string // of one run
}

func newRunSamples(t *testing.T) *runSamples {
	t.Helper()
	s := &runSamples{dir: t.TempDir(), paced: "paced", scraped: "scraped", unsized: "unsized", failed: "failed", mixed: "mixed", left: "left", live: "live", unsizedLive: "unsized live"}
	s.roundRobin, s.prefix = absolute(t, root+"/traces/runs/round-robin"), absolute(t, root+"/traces/runs/prefix")
	must(t, s.dir, "simulate", sample(t), "--limit", "20", "--max-concurrency", "1", "--out", s.paced)
	s.alter(t, s.scraped, "samples.jsonl", `"rss_bytes"`, `"server":{"engine":"vllm","engines":2,"kv_use":0.5,"kv_use_max":0.5,"running":1,"waiting":1,`+
		`"queried_tokens":9,"hit_tokens":5,"preemptions":0,"aborted":0,"hit_rate":0.5,"block_size":16,"capacity_tokens":4096},"rss_bytes"`)
	s.alter(t, s.unsized, "run.json", `"server_block_size": 16,`, "")
	s.alter(t, s.unsized, "requests.jsonl", `"last_ms": `, `"reasoning_only": true, "last_ms": `)
	s.alter(t, s.unsized, "requests.jsonl", `"chunks": `, `"reasoning_tokens": 2, "chunks": `)
	s.alter(t, s.failed, "requests.jsonl", `"status": 200`, `"status": 500, "error": "overload", "error_class": "status"`)
	must(t, s.dir, "simulate", absolute(t, root+"/traces/agent.jsonl"), "--answers", "live", "--out", s.live)
	s.alterCopy(t, s.live, s.unsizedLive, "run.json", `"server_block_size": 16,`, "")
	s.alter(t, s.left, "samples.jsonl", `"rss_bytes"`, `"server":{"engine":"vllm","engines":2,"running":1,"aborted":0},"rss_bytes"`)
	s.alter(t, s.left, "requests.jsonl", `"status": 200`, `"status": 200, "error": "closed", "error_class": "abandoned"`)
	s.alter(t, s.mixed, "requests.jsonl", `"status": 200`, `"requested_model": "a", "status": 200`)
	s.alter(t, s.mixed, "run.json", `"target": {`, `"target": {"models": [{"model": "a", "share": 1}],`)
	for i, name := range []string{"part-1", "part-2"} {
		s.alter(t, name, "run.json", `"version"`, fmt.Sprintf(`"part": {"run_id": "r", "number": %d, "of": 2, "by": "session", "host": "node", "run_rows": 2, "start": "2026-01-01T00:00:00Z", `+
			`"clock": {"reference": "part 1", "before": {"at": "2026-01-01T00:00:00Z", "offset_ms": 0.1, "bound_ms": 0.1}}}, "version"`, i+1))
		s.parts = append(s.parts, name)
	}
	return s
}

// alter replaces text in a file of a copy of a run, which it makes if necessary.
func (s *runSamples) alter(t *testing.T, name, file, old, new string) {
	t.Helper()
	s.alterCopy(t, s.roundRobin, name, file, old, new)
}

// alterCopy is alter for a copy of another run, whose folder is absolute or in s.dir.
func (s *runSamples) alterCopy(t *testing.T, of, name, file, old, new string) {
	t.Helper()
	if !filepath.IsAbs(of) {
		of = filepath.Join(s.dir, of)
	}
	dir := filepath.Join(s.dir, name)
	if _, err := os.Stat(dir); err != nil {
		if err := os.CopyFS(dir, os.DirFS(of)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("no %s in %s (%v)", old, file, err)
	}
	write(t, dir, file, strings.ReplaceAll(string(text), old, new))
}

// prints returns what commands print as JSON.
func (s *runSamples) prints(t *testing.T, verb string, commands ...[]string) (texts []string) {
	t.Helper()
	for _, args := range commands {
		texts = append(texts, must(t, s.dir, append([]string{verb, "--json"}, args...)...))
	}
	return texts
}

// traceSamples are traces with and without block ids, times, sessions and delays.
func traceSamples(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	must(t, dir, "convert", absolute(t, root+"/traces/conversation.jsonl"), "--speedup", "0.1", "-o", "long.jsonl")
	row := `{"timestamp": 0, "input_length": 5, "output_length": 0, "session_id": "a"}` + "\n"
	return []string{
		filepath.Join(dir, "long.jsonl"), absolute(t, root+"/traces/agent.jsonl"), absolute(t, root+"/traces/sharegpt.json"),
		write(t, dir, "bare.jsonl", strings.ReplaceAll(row, `, "session_id": "a"`, "")),
		write(t, dir, "empty.jsonl", `{"input_length": 0, "output_length": 1, "hash_ids": []}`+"\n"),
		write(t, dir, "graph.jsonl", graphRows), write(t, dir, "turns.jsonl", strings.Repeat(strings.Replace(graphRows[:strings.Index(graphRows, "\n")+1], `"request_id": "a1"`, `"hash_ids": [1]`, 1), 2)),
		write(t, dir, "timed.jsonl", row+strings.ReplaceAll(row, "0,", "9,")), write(t, dir, "grid.jsonl", strings.ReplaceAll(row, `"session_id": "a"`, `"hash_ids": [1]`)),
	}
}

func verdicts() schemaObject {
	return schemaObject{"enum": []string{run.Valid.String(), run.Suspect.String(), run.Invalid.String()}}
}

// summarySchema allows more percentiles than a summary has by default.
func summarySchema(t *testing.T) schemaObject {
	t.Helper()
	s := newRunSamples(t)
	texts := s.prints(t, "report",
		[]string{s.roundRobin, "--goodput", "ttft:100", "--fail-if", "mean_ttft>1h", "--cooldown-time", "1s"},
		[]string{s.paced}, []string{s.scraped}, []string{s.unsized}, []string{s.failed}, []string{s.mixed}, []string{s.left}, []string{s.live}, []string{s.unsizedLive}, append([]string{"--merge"}, s.parts...))
	number := schemaObject{"type": "number"}
	cause := closedObject(schemaObject{"requests": number, "tokens": number, "cause": schemaObject{"type": "string"}}, []string{"requests", "tokens"})
	schemas := &sampleSchemas{comments: reportComments(t), known: map[string]schemaObject{
		"moontide/verdict":                  verdicts(),
		"moontide/evidence/*/level":         verdicts(),
		"moontide/parts/*/verdict":          verdicts(),
		"moontide/parts/*/evidence/*/level": verdicts(),
		"moontide/thresholds":               schemaOf[runfile.Thresholds](t),
		"moontide/errors/{}":                number,
		"moontide/cache/causes/{}":          cause,
	}}
	schema := withComment[report.Run](t, "Summary", schemas.of(t, "", shapeOf(t, texts...)))
	properties := schema["properties"].(schemaObject)
	own := properties["moontide"].(schemaObject)
	own["properties"].(schemaObject)["name"] = schemaObject{"type": "string", "description": "name of the run among several"}
	for object, latencies := range map[*schemaObject][]run.Latency{&schema: run.VLLMLatencies, &own: run.Latencies} {
		var names []string
		for _, l := range latencies {
			names = append(names, l.Key())
		}
		(*object)["patternProperties"] = schemaObject{"^p[0-9.]+_(" + strings.Join(names, "|") + ")$": schemaObject{"type": []string{"number", "null"}}}
	}
	return schema
}

// withComment adds the comment of the method that writes an output.
func withComment[T any](t *testing.T, method string, schema schemaObject) schemaObject {
	t.Helper()
	schema["description"] = sources{}.comment(t, reflect.TypeFor[T](), method)
	return schema
}

func listOf(file string) func(*testing.T) schemaObject {
	return func(*testing.T) schemaObject {
		return schemaObject{"type": "array", "items": schemaObject{"$ref": file}}
	}
}

func comparisonSchema(t *testing.T) schemaObject {
	t.Helper()
	s := newRunSamples(t)
	must(t, s.dir, "simulate", absolute(t, root+"/traces/conversation.jsonl"), "--engine", absolute(t, root+"/traces/engines/deepseek-r1-tp16.json"),
		"--engines", "2", "--routing", "prefix", "--max-num-seqs", "12", "--out", "predicted")
	texts := s.prints(t, "compare",
		[]string{s.roundRobin, s.prefix, "--goodput", "ttft:100", "--fail-if", "mean_ttft>1h"},
		[]string{s.roundRobin + "," + s.prefix, s.prefix + "," + s.roundRobin, "--force"},
		[]string{s.paced, s.failed, "--force"}, []string{s.failed, s.scraped, "--force"}, []string{"predicted", s.prefix},
		[]string{s.failed + "," + s.prefix, s.prefix + "," + s.roundRobin, "--force"})
	return withComment[report.Diff](t, "JSON", (&sampleSchemas{comments: reportComments(t), known: map[string]schemaObject{
		"a/runs/*/verdict": verdicts(), "b/runs/*/verdict": verdicts(),
		"warnings": {"type": "array", "items": schemaObject{"type": "string"}}, // about two runs of one server
	}}).of(t, "", shapeOf(t, texts...)))
}

func analysisSchema(t *testing.T) schemaObject {
	t.Helper()
	s := &runSamples{dir: t.TempDir()}
	traces := traceSamples(t)
	texts := s.prints(t, "analyze", []string{sample(t)}, []string{traces[0], "--block-size", "100"})
	for _, trace := range traces {
		texts = append(texts, s.prints(t, "analyze",
			[]string{trace, "--kv-model", "llama-3.1-70b", "--cache", "lru,belady", "--workers", "2", "--ttft", "1s", "--tpot", "10ms"})...)
	}
	return withComment[report.Dataset](t, "JSON", (&sampleSchemas{comments: reportComments(t)}).of(t, "", shapeOf(t, texts...)))
}

func analysesSchema(t *testing.T) schemaObject {
	t.Helper()
	s := &runSamples{dir: t.TempDir()}
	traces := traceSamples(t)
	texts := s.prints(t, "analyze", traces, traces[5:], []string{traces[5], traces[5]}, []string{traces[1], traces[1]})
	return withComment[report.Comparison](t, "JSON", (&sampleSchemas{comments: reportComments(t), known: map[string]schemaObject{
		"traces/*": {"$ref": "analysis.json"},
	}}).of(t, "", shapeOf(t, texts...)))
}
