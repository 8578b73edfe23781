package main

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moontide/replay"
)

// traceKeyTypes maps how the page of the native format names a type to its schema.
var traceKeyTypes = map[string]schemaObject{
	"number, ms":            {"type": "number", "minimum": 0},
	"whole, tokens":         {"type": "integer", "minimum": 0},
	"list of whole numbers": {"type": "array", "items": schemaObject{"type": "integer", "minimum": 0}},
	"list of keys":          {"type": "array", "items": schemaObject{"type": "string"}},
	"list of strings":       {"type": "array", "items": schemaObject{"type": "string"}},
	"string":                {"type": "string"},
	"list":                  {"type": "array"},
	"object":                {"type": "object"},
}

// traceSchema is the table of keys in traces/README.md. A row may have other keys.
func traceSchema(t *testing.T) schemaObject {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "traces", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| key | type | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	code := regexp.MustCompile("`([^`]+)`")
	properties, lengths := schemaObject{}, []any{}
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("traces/README.md: %d cells in %q", len(cells), line)
		}
		meaning, aliases, _ := strings.Cut(cells[2], "; also ")
		meaning, required := strings.CutSuffix(meaning, "; required")
		keys := code.FindAllStringSubmatch(cells[0], -1)
		types := []string{cells[1]}
		if traceKeyTypes[cells[1]] == nil { // one for each key
			types = strings.Split(cells[1], ", ")
		}
		alternatives := []any{}
		for i, key := range slices.Concat(keys, code.FindAllStringSubmatch(strings.SplitN(aliases, ".", 2)[0], -1)) {
			known, ok := traceKeyTypes[types[min(i, len(types)-1)]]
			if !ok {
				t.Fatalf("traces/README.md: unknown type in %q", line)
			}
			properties[key[1]] = orNull(known, strings.ReplaceAll(meaning, "`", ""))
			alternatives = append(alternatives, schemaObject{"required": []string{key[1]}, "properties": schemaObject{key[1]: known}})
		}
		if required {
			lengths = append(lengths, schemaObject{"anyOf": alternatives})
		}
	}
	if len(lengths) != 2 {
		t.Fatalf("traces/README.md: %d keys are required, want both lengths", len(lengths))
	}
	return schemaObject{"type": "object", "properties": properties, "allOf": lengths}
}

// orNull returns the schema of a value that may be null.
func orNull(schema schemaObject, description string) schemaObject {
	with := schemaObject{"description": description}
	for key, value := range schema {
		with[key] = value
	}
	with["type"] = []any{schema["type"], "null"}
	return with
}

// recordFieldTypes maps the methods of the field table to the schemas of fields.
var recordFieldTypes = map[string]schemaObject{
	"int":       {"type": "integer", "minimum": 0},
	"count":     {"type": "integer", "minimum": 0},
	"ints":      {"type": "array", "items": schemaObject{"type": "integer", "minimum": 0}},
	"duration":  {"type": "number"},
	"instant":   {"type": "number"},
	"durations": {"type": "array", "items": schemaObject{"type": "number"}},
	"text":      {"type": "string"},
	"flag":      {"const": true},
}

// recordSchema is the field table of results, on top of the row of the trace.
func recordSchema(t *testing.T) schemaObject {
	t.Helper()
	properties, required := schemaObject{}, []string{}
	types := &typeSchemas{sources{}}
	ast.Inspect(parseGo(t, token.NewFileSet(), filepath.Join(root, "replay", "runfile", "record.go")), func(n ast.Node) bool {
		function, ok := n.(*ast.FuncDecl)
		if ok && function.Name.Name != "fields" {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || recordFieldTypes[method.Sel.Name] == nil {
			return true
		}
		schema := recordField(t, types, call)
		for key, value := range recordFieldTypes[method.Sel.Name] {
			schema[key] = value
		}
		key := stringOf(call.Args[0])
		properties[key] = schema
		if always, ok := call.Args[len(call.Args)-1].(*ast.Ident); ok && always.Name == "true" {
			required = append(required, key)
		}
		return false
	})
	if len(required) == 0 || len(properties) < 20 {
		t.Fatalf("the field table was not understood: %v", properties)
	}
	return schemaObject{"$ref": "trace.json", "properties": properties, "required": required}
}

// recordField returns the description and the values of a field.
func recordField(t *testing.T, types *typeSchemas, call *ast.CallExpr) schemaObject {
	t.Helper()
	schema := schemaObject{}
	ast.Inspect(call, func(n ast.Node) bool {
		place, ok := n.(*ast.UnaryExpr) // &r.Field or &r.Counts.Field
		if !ok {
			return true
		}
		path := []string{}
		for x, ok := place.X.(*ast.SelectorExpr); ok; x, ok = x.X.(*ast.SelectorExpr) {
			path = append([]string{x.Sel.Name}, path...)
		}
		typ := reflect.TypeFor[replay.Record]()
		for _, name := range path {
			f, found := typ.FieldByName(name)
			if !found {
				t.Fatalf("no field %q in a record", path)
			}
			text := types.comment(t, typ, name)
			if typ == reflect.TypeFor[replay.Record]() && text == "" {
				text = types.comment(t, reflect.TypeFor[replay.Outcome](), name)
			}
			if text == "" {
				text, _ = types.typeComment(t, f.Type)
			}
			if text != "" {
				schema["description"] = text
			}
			typ = f.Type
		}
		if _, values := types.typeComment(t, typ); values != nil {
			schema["enum"] = values
		}
		return false
	})
	return schema
}
