package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What the commands write agrees with the schemas.
func TestSchemasHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "replay", sample(t), "--limit", "3", "--out", "live")
	must(t, dir, "simulate", sample(t), "--limit", "20", "--out", "virtual")
	must(t, dir, "fit", sample(t), "-o", "model.json")
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
	agrees(t, "samples.json", read("live/samples.jsonl"))
	agrees(t, "summary.json", read("live/summary.json")+read("virtual/summary.json"))
	agrees(t, "summary.json", must(t, dir, "report", "live", "--json", "--percentiles", "50,99.9", "--goodput", "ttft:2000"))
	agrees(t, "check.json", must(t, dir, "check", sample(t), "--json"))
	agrees(t, "model.json", read("model.json"))
	agrees(t, "version.json", must(t, dir, "version", "--json"))
}

// agrees checks JSON values against a schema. If it is closed, it refuses the
// values with any key misspelt.
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
		object, ok := value.(map[string]any)
		if !ok || schema.AdditionalProperties != false {
			continue
		}
		for key, member := range object {
			delete(object, key)
			object[key+"_"] = member
			if schema.Validate(object) == nil {
				t.Errorf("%s accepts a key %s_", file, key)
			}
			delete(object, key+"_")
			object[key] = member
		}
	}
	if values == 0 {
		t.Errorf("%s: no values", file)
	}
}
