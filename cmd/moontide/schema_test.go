package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/analyze/run"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/synth/sessions"
)

// jsonOutput is an output that programs read, and its schema.
type jsonOutput struct {
	file   string // of the schema
	what   string
	prints string // the commands and files
	schema func(t *testing.T) schemaObject
}

// jsonOutputs lists the outputs that have a schema.
var jsonOutputs = []jsonOutput{
	{"trace.json", "a row of a native trace", "`moontide convert`, `moontide synth`", traceSchema},
	{"requests.json", "a request of a run: its row of the trace, then what happened", "`requests.jsonl` of a run folder", recordSchema},
	{"run.json", "configuration of a run, and how it ended", "`run.json` of a run folder", schemaOf[runfile.Run]},
	{"samples.json", "state of client and server in one second", "`samples.jsonl` of a run folder", schemaOf[runfile.Sample]},
	{"summary.json", "metrics, verdict and evidence of a run", "`summary.json` of a run folder, `moontide report --json` for one run", summarySchema},
	{"check.json", "findings of a check", "`moontide check --json`", schemaOf[report.CheckJSON]},
	{"model.json", "model of a trace", "`moontide fit`", modelSchema},
	{"calibration.json", "range of a client, and the loads it was found with", "`moontide calibrate --json` and its file", schemaOf[bench.Calibration]},
	{"version.json", "version of the binary", "`moontide version --json`", schemaOf[build]},
}

// modelSchema is that of the file in a model, which another encoder writes.
func modelSchema(t *testing.T) schemaObject {
	t.Helper()
	file, _ := reflect.TypeFor[sessions.Model]().FieldByName("file")
	return (&typeSchemas{sources: sources{}, noNullLists: true}).of(t, file.Type)
}

func schemaTable() string {
	var b strings.Builder
	b.WriteString("| schema | what it describes | where |\n| --- | --- | --- |\n")
	for _, o := range jsonOutputs {
		fmt.Fprintf(&b, "| [`%s`](schema/%s) | %s | %s |\n", o.file, o.file, o.what, o.prints)
	}
	return b.String()
}

// The schemas are those of the Go types, with their comments as descriptions.
func TestSchemas(t *testing.T) {
	for _, o := range jsonOutputs {
		schema := o.schema(t)
		schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		schema["title"] = "moontide: " + o.what
		text := &bytes.Buffer{}
		out := json.NewEncoder(text)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		if err := out.Encode(schema); err != nil {
			t.Fatal(err)
		}
		current(t, filepath.Join("schema", o.file), text.String())
	}
	if found := files(t, "schema"); len(found) != len(jsonOutputs) {
		t.Errorf("%d outputs have %d schemas: %q", len(jsonOutputs), len(found), found)
	}
}

// summarySchema is that of the metric registry. What is under "moontide" has no closed
// set of members: only those that every summary has are listed.
func summarySchema(*testing.T) schemaObject {
	properties, own := schemaObject{}, schemaObject{}
	number := func(text string) schemaObject {
		return schemaObject{"type": []string{"number", "null"}, "description": text}
	}
	for _, m := range run.BlockMetrics(nil) {
		properties[m.Key] = number(m.Heading())
	}
	own["cached_tokens"] = properties["cached_tokens"] // no key of vLLM's
	delete(properties, "cached_tokens")
	for i, latencies := range [][]run.Latency{run.VLLMLatencies, run.Latencies} {
		for _, l := range latencies {
			for _, s := range []run.Statistic{run.Mean, run.Median, run.Std, run.Min, run.Max, run.Percentile(50), run.Percentile(90), run.Percentile(99)} {
				m := l.Metric(s)
				if i == 0 {
					properties[m.Key] = number(m.Heading())
				} else if properties[m.Key] == nil {
					own[m.Key] = number(m.Heading())
				}
			}
		}
	}
	required := []string{"moontide"}
	for key := range properties {
		required = append(required, key)
	}
	for key, text := range map[string]string{"date": "start of the run, UTC", "backend": "openai- and the endpoint", "endpoint_type": "chat or completions", "model_id": "name of the model"} {
		properties[key] = schemaObject{"type": "string", "description": text}
		required = append(required, key)
	}
	for key, text := range map[string]string{"num_prompts": "rows of the trace", "max_concurrency": "limit of requests in flight", "request_rate": "offered request rate (req/s)"} {
		properties[key] = number(text)
		required = append(required, key)
	}
	properties["request_goodput"] = number(run.MustMetric("request_goodput").Heading())
	own["verdict"] = schemaObject{"enum": []string{run.Valid.String(), run.Suspect.String(), run.Invalid.String()}}
	own["notes"] = schemaObject{"type": "array", "items": schemaObject{"type": "string"}}
	own["evidence"] = schemaObject{"type": "array", "items": schemaObject{"type": "object", "required": []string{"check", "level", "text"}}}
	ownRequired := []string{}
	for key := range own {
		ownRequired = append(ownRequired, key)
	}
	slices.Sort(required)
	slices.Sort(ownRequired)
	properties["moontide"] = schemaObject{"type": "object", "properties": own, "required": ownRequired}
	return schemaObject{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		"patternProperties": schemaObject{"^p[0-9.]+_(ttft|tpot|itl|e2el)_ms$": number("percentile of a latency (ms)")},
	}
}
