package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"moontide/analyze/report"
	"moontide/replay/bench"
	"moontide/replay/runfile"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/enginefile"
	"moontide/trace/routing"
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
	{"gaps.json", "count of gaps between token chunks", "`gaps.jsonl` of a run folder written with `--no-chunk-times`", schemaOf[runfile.GapCount]},
	{"samples.json", "state of client and server in one second", "`samples.jsonl` of a run folder", schemaOf[runfile.Sample]},
	{"sweep.json", "flags of a sweep", "`sweep.json` of a sweep's folder", schemaOf[bench.SweepRecord]},
	{"outcome.json", "outcome of a command that measures runs: verdicts, gates and metrics", "`moontide replay --json`, `moontide bench --json`", schemaOf[report.OutcomeJSON]},
	{"check.json", "findings of a check", "`moontide check --json`", schemaOf[report.CheckJSON]},
	{"fidelity.json", "how a drawn trace resembles its source", "`moontide synth --check --json`", schemaOf[report.FidelityJSON]},
	{"engine.json", "simulated engines, and the errors of a fit", "`moontide fit-engine`; read by `--engine`", engineSchema},
	{"engine_fit.json", "estimates of a fit, with measured and predicted values", "`moontide fit-engine --json`", schemaOf[report.EngineFitJSON]},
	{"calibration.json", "range of a client, and the loads it was found with", "the file of `moontide calibrate`", schemaOf[bench.Calibration]},
	{"plan.json", "what several deployments would do", "`moontide simulate --json`", schemaOf[report.PlanJSON]},
}

// engineSchema is that of engine files, whose settings are the parameters of engines.
func engineSchema(t *testing.T) schemaObject {
	t.Helper()
	section := func(ofEngine bool) schemaObject {
		properties := schemaObject{}
		for _, p := range engine.Parameters {
			if (p.OfEngine != nil) != ofEngine {
				continue
			}
			kind := "string"
			switch p.Field(new(engine.Deployment)).(type) {
			case *int:
				kind = "integer"
			case *bool:
				kind = "boolean"
			}
			properties[p.Name] = schemaObject{"type": kind, "description": strings.ReplaceAll(p.Usage, "`", "")}
		}
		if !ofEngine {
			properties["routing"] = schemaObject{"type": "string", "enum": routing.Policies(), "description": "routing policy"}
		}
		return closedObject(properties, []string{})
	}
	return closedObject(schemaObject{
		"format": schemaObject{"const": "moontide engine"}, "version": schemaObject{"const": 1},
		"deployment": section(false), "engine": section(true), "decode-engine": section(true), "fit": schemaOf[enginefile.Fit](t),
	}, []string{"format", "version", "deployment", "engine"})
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
