package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"moontide/analyze/report"
	"moontide/replay/experiment"
	"moontide/replay/runfile"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
	"moontide/trace"
)

// schemaObject is a JSON Schema.
type schemaObject = map[string]any

// jsonOutputs lists the outputs that programs read, and their schemas. Rows have no type
// of one struct: a row may have other keys, and a record is written by a table of fields.
var jsonOutputs = []struct {
	file   string // of the schema
	what   string
	prints string // the commands and files
	typ    reflect.Type
}{
	{"trace.json", "a row of a native trace", "`moontide convert`, `moontide synth`", nil},
	{"requests.json", "a request of a run: its row of the trace, then what happened", "`requests.jsonl` of a run folder", nil},
	{"run.json", "configuration of a run, and how it ended", "`run.json` of a run folder", reflect.TypeFor[runfile.Run]()},
	{"gaps.json", "count of gaps between token chunks", "`gaps.jsonl` of a run folder written with `no-chunk-times`", reflect.TypeFor[runfile.GapCount]()},
	{"samples.json", "state of client and server in one second", "`samples.jsonl` of a run folder", reflect.TypeFor[runfile.Sample]()},
	{"set.json", "settings of a set of runs", "`set.json` of a set's folder", reflect.TypeFor[experiment.SetRecord]()},
	{"outcome.json", "outcome of a command that measures runs: verdicts, gates and metrics", "`moontide replay --json`, `bench --json`, `simulate --json`", reflect.TypeFor[report.OutcomeJSON]()},
	{"check.json", "findings of a check", "`moontide check --json`", reflect.TypeFor[report.CheckJSON]()},
	{"engine.json", "simulated engines, and the errors of a fit", "`moontide fit-engine`; read by `--engine`", reflect.TypeFor[engineJSON]()},
	{"calibration.json", "range of a client, and the loads it was found with", "the file of `moontide calibrate`", reflect.TypeFor[experiment.Calibration]()},
}

// engineJSON is the JSON of an engine file. Its settings are the engine parameters.
type engineJSON struct {
	Format     string         `json:"format"`
	Version    int            `json:"version"`
	Deployment parametersJSON `json:"deployment"`
	Engine     parametersJSON `json:"engine"`
	Decode     parametersJSON `json:"decode-engine,omitempty"`
	Fit        fit.Fitted     `json:"fit,omitempty"`
}

// parametersJSON is an object whose members come from the table of engine parameters.
type parametersJSON map[string]any

func schemaTable() string {
	var b strings.Builder
	b.WriteString("| schema | what it describes | where |\n| --- | --- | --- |\n")
	for _, o := range jsonOutputs {
		fmt.Fprintf(&b, "| [`%s`](schema/%s) | %s | %s |\n", o.file, o.file, o.what, o.prints)
	}
	return b.String()
}

// The schemas have the members of the Go types. Descriptions and the values of texts are
// written by hand: go generate keeps them.
func TestSchemas(t *testing.T) {
	for _, o := range jsonOutputs {
		if o.typ == nil {
			continue
		}
		path := filepath.Join("schema", o.file)
		schema := schemaOf(t, o.typ, readSchema(t, path))
		schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		schema["title"] = "moontide: " + o.what
		text := &bytes.Buffer{}
		out := json.NewEncoder(text)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		if err := out.Encode(schema); err != nil {
			t.Fatal(err)
		}
		current(t, path, text.String())
	}
	found := files(t, "schema")
	if len(found) != len(jsonOutputs) {
		t.Errorf("%d outputs have %d schemas: %q", len(jsonOutputs), len(found), found)
	}
	// A capitalized word that begins no later sentence is a name of the code.
	code := regexp.MustCompile(`"description": "(.*[^.] )?([A-Z]\w*[a-z].*|nil\b.*)`)
	help, _ := json.Marshal(propertiesOfSettings()) // is for users
	for _, name := range found {
		for _, line := range code.FindAllString(readFile(t, filepath.Join("schema", name)), -1) {
			if text := strings.Split(line, `"`)[3]; !strings.Contains(string(help), text) {
				t.Errorf("%s has a name of the code: %s", name, line)
			}
		}
	}
	engines := readSchema(t, "schema/engine.json")["properties"].(schemaObject)
	var all []string
	for _, p := range engine.Parameters {
		all = append(all, p.Name)
	}
	documented := slices.Concat(membersOf(engines["deployment"]), membersOf(engines["engine"]))
	sameKeys(t, "engine.json", documented, all)
	sameKeys(t, "decode-engine", membersOf(engines["decode-engine"]), membersOf(engines["engine"]))
}

func readSchema(t *testing.T, path string) (schema schemaObject) {
	t.Helper()
	if err := json.Unmarshal(read(t, path), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func membersOf(schema any) []string {
	return slices.Collect(maps.Keys(schema.(schemaObject)["properties"].(schemaObject)))
}

func sameKeys(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: keys %q, want %q", what, got, want)
	}
}

// schemaOf returns the schema of a Go type as encoding/json writes it, with the
// handwritten descriptions of the old schema.
func schemaOf(t *testing.T, typ reflect.Type, old schemaObject) schemaObject {
	t.Helper()
	of := func(name string) schemaObject { before, _ := old[name].(schemaObject); return before }
	schema := schemaObject{}
	switch typ.Kind() {
	case reflect.String:
		schema["type"] = "string"
	case reflect.Bool:
		schema["type"] = "boolean"
	case reflect.Float64:
		schema["type"] = "number"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		schema["type"] = "integer"
	case reflect.Array, reflect.Slice:
		schema["type"], schema["items"] = []any{"array", "null"}, schemaOf(t, typ.Elem(), of("items"))
	case reflect.Map:
		if typ == reflect.TypeFor[parametersJSON]() {
			return old
		}
		schema["type"], schema["additionalProperties"] = "object", schemaOf(t, typ.Elem(), of("additionalProperties"))
	case reflect.Pointer:
		schema = schemaOf(t, typ.Elem(), old)
		schema["type"] = []any{schema["type"], "null"}
	case reflect.Struct:
		switch typ {
		case reflect.TypeFor[time.Time]():
			schema["type"], schema["format"] = "string", "date-time"
		case reflect.TypeFor[settings.Settings]():
			schema["type"], schema["properties"], schema["additionalProperties"] = "object", propertiesOfSettings(), false
		}
		if len(schema) > 0 {
			break
		}
		properties, required := schemaObject{}, []string{}
		for _, f := range reflect.VisibleFields(typ) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || name == "" || !f.IsExported() || len(f.Index) > 1 && typ.Field(f.Index[0]).Tag != "" {
				continue
			}
			before, _ := of("properties")[name].(schemaObject)
			properties[name] = schemaOf(t, f.Type, before)
			if !strings.Contains(options, "omit") {
				required = append(required, name)
			}
		}
		schema["type"], schema["properties"], schema["required"], schema["additionalProperties"] = "object", properties, required, false
	default:
		t.Fatalf("no schema of %v", typ)
	}
	for _, byHand := range []string{"description", "enum", "const", "minimum", "minItems", "maxItems"} {
		if value, ok := old[byHand]; ok {
			schema[byHand] = value
		}
	}
	return schema
}

// propertiesOfSettings returns the members of settings in files.
func propertiesOfSettings() schemaObject {
	properties := schemaObject{"version": schemaObject{"type": "integer"}}
	for i := range settings.Table {
		row := &settings.Table[i]
		if row.Here {
			continue
		}
		one := schemaObject{"type": "string"}
		switch row.Field(new(settings.Settings)).(type) {
		case *bool:
			one["type"] = "boolean"
		case *int, *uint64:
			one["type"] = "integer"
		case *float64, *trace.Opt[float64]:
			one["type"] = []any{"number", "string"} // inf
		}
		if row.Repeatable() {
			one = schemaObject{"type": "array", "items": one}
		}
		one["description"] = strings.ReplaceAll(row.Usage(), "`", "")
		properties[strings.ReplaceAll(row.Name, "-", "_")] = one
	}
	return properties
}

// The keys of rows are those of the page on the native format, and of the table of fields
// of a record.
func TestSchemasOfRows(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(readFile(t, filepath.Join(root, "traces", "README.md")), "\n| key | type | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		_, aliases, _ := strings.Cut(cells[len(cells)-1], "; also ")
		aliases, _, _ = strings.Cut(aliases, ".")
		for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0]+aliases, -1) {
			documented = append(documented, key[1])
		}
	}
	sameKeys(t, "trace.json", membersOf(any(readSchema(t, "schema/trace.json"))), documented)
	var fields []string
	for _, field := range regexp.MustCompile(`(?m)^\t.*c\.\w+\("(\w+)", &?\(?`).FindAllStringSubmatch(readFile(t, filepath.Join(root, "replay", "runfile", "record.go")), -1) {
		fields = append(fields, field[1])
	}
	sameKeys(t, "requests.json", membersOf(any(readSchema(t, "schema/requests.json"))), fields)
}

// What the commands write agrees with the schemas.
func TestSchemasHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := []string{"replay", sample(t), "--limit", "3", "--speedup", "100", "--set", "step-base=1ms", "--out"}
	must(t, dir, append(short, "live")...)
	must(t, dir, append(short, "gaps", "--set", "no-chunk-times=true")...)
	must(t, dir, "simulate", sample(t), "--limit", "20", "--out", "virtual")
	in := func(path string) string { return readFile(t, filepath.Join(dir, path)) }
	agrees(t, "trace.json", must(t, dir, "convert", sample(t))+readFile(t, root+"/traces/chat.jsonl")+readFile(t, root+"/traces/agent.jsonl"))
	agrees(t, "requests.json", in("live/requests.jsonl")+in("virtual/requests.jsonl"))
	agrees(t, "run.json", in("live/run.json")+in("virtual/run.json"))
	agrees(t, "gaps.json", in("gaps/gaps.jsonl"))
	agrees(t, "samples.json", in("live/samples.jsonl"))
	agrees(t, "outcome.json", must(t, dir, "bench", "--json", "--virtual", "--isl", "20", "--osl", "2", "--max-concurrency", "1,2", "--limit", "3", "--slo", "mean_ttft<1h", "--out", "sweep"))
	agrees(t, "outcome.json", must(t, dir, append(short, "json", "--json")...))
	agrees(t, "set.json", in("sweep/set.json"))
	agrees(t, "check.json", must(t, dir, "check", sample(t), "--json"))
	agrees(t, "engine.json", readFile(t, writeEngine(t, &fit.File{Deployment: slowEngines()})))
	agrees(t, "outcome.json", must(t, dir, "simulate", sample(t), "--json", "--engines", "1,2", "--prefill-engines", "1", "--decode-engines", "1", "--slo", "p50_ttft<1s"))
}

// agrees checks JSON values against a schema.
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
	}
	if values == 0 {
		t.Errorf("%s: no values", file)
	}
}
