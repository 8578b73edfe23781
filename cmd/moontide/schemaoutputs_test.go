package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"moontide/replay/sim/enginefile"
)

// What the commands write agrees with the schemas.
func TestSchemasHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "replay", sample(t), "--limit", "3", "--out", "live")
	must(t, dir, "replay", sample(t), "--limit", "3", "--out", "live2")
	must(t, dir, "simulate", sample(t), "--limit", "20", "--out", "virtual")
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	agrees(t, "trace.json", must(t, dir, "convert", sample(t)))
	for _, trace := range []string{"chat.jsonl", "agent.jsonl"} {
		text, err := os.ReadFile(filepath.Join(root, "traces", trace))
		if err != nil {
			t.Fatal(err)
		}
		agrees(t, "trace.json", string(text))
	}
	agrees(t, "requests.json", read("live/requests.jsonl")+read("virtual/requests.jsonl"))
	agrees(t, "run.json", read("live/run.json")+read("virtual/run.json"))
	must(t, dir, "replay", sample(t), "--limit", "3", "--no-chunk-times", "--out", "short")
	agrees(t, "gaps.json", read("short/gaps.jsonl"))
	must(t, dir, "bench", "--virtual", "--isl", "20", "--osl", "2", "--concurrency", "1", "--num-prompts", "3", "--out", "sweep")
	agrees(t, "outcome.json", must(t, dir, "bench", "--json", "--virtual", "--isl", "20", "--osl", "2", "--concurrency", "1,2", "--num-prompts", "3", "--slo", "mean_ttft<1h", "--out", "two"))
	agrees(t, "outcome.json", must(t, dir, "replay", sample(t), "--limit", "3", "--json", "--out", "live3"))
	agrees(t, "sweep.json", read("sweep/sweep.json"))
	agrees(t, "samples.json", read("live/samples.jsonl"))
	conversation := absolute(t, root+"/traces/conversation.jsonl")
	agrees(t, "check.json", must(t, dir, "check", sample(t), "--json"))
	var engines bytes.Buffer
	if _, err := enginefile.New(slowEngines()).WriteTo(&engines); err != nil {
		t.Fatal(err)
	}
	agrees(t, "engine.json", engines.String())
	agrees(t, "plan.json", must(t, dir, "simulate", conversation, "--json", "--engines", "1,2", "--prefill-engines", "1", "--decode-engines", "1", "--slo", "p50_ttft<1s"))
}

// agrees checks JSON values against a schema, which has to refuse a key that is
// misspelt.
func agrees(t *testing.T, file, text string) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(absolute(t, filepath.Join("schema", file)))
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for in := json.NewDecoder(strings.NewReader(text)); in.More(); values++ {
		var value any
		if err := in.Decode(&value); err != nil {
			t.Fatalf("%s: %v in %s", file, err, text)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if file != "trace.json" && file != "requests.json" { // a row may have any keys
			refusesMisspelt(t, file, schema, value)
		}
	}
	if values == 0 {
		t.Errorf("%s: no values", file)
	}
}

// refusesMisspelt checks the objects in a value. One that may have any keys has a
// schema for their values.
func refusesMisspelt(t *testing.T, at string, schema *jsonschema.Schema, value any) {
	t.Helper()
	for schema.Ref != nil && schema.Properties == nil {
		schema = schema.Ref
	}
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			if schema.Items2020 != nil {
				refusesMisspelt(t, at+"/*", schema.Items2020, item)
			}
		}
	case map[string]any:
		_, anyKeys := schema.AdditionalProperties.(*jsonschema.Schema)
		for _, key := range slices.Collect(maps.Keys(value)) {
			if known := schema.Properties[key]; known != nil {
				refusesMisspelt(t, at+"/"+key, known, value[key])
			}
			value[key+"_"] = value[key]
			if !anyKeys && schema.Validate(value) == nil {
				t.Errorf("%s accepts a key %s_", at, key)
			}
			delete(value, key+"_")
		}
	}
}
