package main

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moontide/analyze/run"
)

// shape is what samples of an output have in common, for outputs that are built
// without a Go type.
type shape struct {
	types   map[string]bool
	objects int
	members map[string]*shape
	present map[string]int // objects that have the key
	items   *shape
}

func newShape() *shape {
	return &shape{types: map[string]bool{}, members: map[string]*shape{}, present: map[string]int{}}
}

// shapeOf returns the shape of JSON texts.
func shapeOf(t *testing.T, texts ...string) *shape {
	t.Helper()
	s := newShape()
	for _, text := range texts {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		s.add(v)
	}
	return s
}

func (s *shape) add(v any) {
	switch v := v.(type) {
	case nil:
		s.types["null"] = true
	case bool:
		s.types["boolean"] = true
	case string:
		s.types["string"] = true
	case float64:
		s.types["number"] = true
	case []any:
		s.types["array"] = true
		for _, item := range v {
			if s.items == nil {
				s.items = newShape()
			}
			s.items.add(item)
		}
	case map[string]any:
		s.types["object"] = true
		s.objects++
		for key, member := range v {
			if s.members[key] == nil {
				s.members[key] = newShape()
			}
			s.members[key].add(member)
			s.present[key]++
		}
	}
}

// sampleSchemas makes schemas of shapes.
type sampleSchemas struct {
	comments []keyComments
	// known has the schemas of the places that samples do not show in full.
	known map[string]schemaObject
}

// of returns the schema of a shape at a place such as evidence/*/level. Objects
// have no keys but those of the samples, which have to show all of them.
func (s *sampleSchemas) of(t *testing.T, at string, x *shape) schemaObject {
	t.Helper()
	if known, ok := s.known[at]; ok {
		return known
	}
	types := slices.Sorted(maps.Keys(x.types))
	if x.types["null"] && len(types) == 1 || x.types["array"] && x.items == nil {
		t.Errorf("no sample shows what is in %s", at)
		return schemaObject{}
	}
	schema := schemaObject{}
	if x.types["object"] {
		schema = s.object(t, at, x)
	}
	if x.items != nil {
		schema["items"] = s.of(t, path.Join(at, "*"), x.items)
	}
	schema["type"] = types
	if len(types) == 1 {
		schema["type"] = types[0]
	}
	return schema
}

func (s *sampleSchemas) object(t *testing.T, at string, x *shape) schemaObject {
	t.Helper()
	if known, ok := s.known[path.Join(at, "{}")]; ok { // any keys, with values of this schema
		return schemaObject{"additionalProperties": known}
	}
	properties, required := schemaObject{}, []string{}
	for _, key := range slices.Sorted(maps.Keys(x.members)) {
		schema := maps.Clone(s.of(t, path.Join(at, key), x.members[key]))
		if schema["type"] == "number" { // null if unknown, even if no sample shows it
			schema["type"] = []string{"null", "number"}
		}
		if text := s.comment(x, key); text != "" {
			schema["description"] = text
		}
		properties[key] = schema
		if x.present[key] == x.objects {
			required = append(required, key)
		}
	}
	return closedObject(properties, required)
}

// comment returns the comment of the literal that makes an object, or the name
// of a metric.
func (s *sampleSchemas) comment(x *shape, key string) string {
	for _, literal := range s.comments {
		made := !slices.ContainsFunc(literal.keys, func(key string) bool { return x.members[key] == nil })
		if text := literal.comments[key]; made && text != "" {
			return text
		}
	}
	if m, err := run.ParseMetric(key); err == nil && m.Key == key {
		return m.Heading()
	}
	return ""
}

// keyComments holds the keys of a literal that makes a JSON object, and the
// comments at the end of their lines.
type keyComments struct {
	keys     []string
	comments map[string]string
}

// reportComments returns those of the reports in JSON.
func reportComments(t *testing.T) (all []keyComments) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "analyze", "report", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file := parseGo(t, files, path)
		lines := map[int]string{}
		for _, c := range file.Comments {
			lines[files.Position(c.Pos()).Line] = oneLine(c.Text())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			found := keyComments{comments: map[string]string{}}
			for _, element := range literal.Elts {
				if key := keyOf(element); key != "" {
					found.keys = append(found.keys, key)
					found.comments[key] = lines[files.Position(element.End()).Line]
				}
			}
			if len(found.keys) > 0 {
				all = append(all, found)
			}
			return true
		})
	}
	// The literal with the most keys describes an object best.
	slices.SortStableFunc(all, func(a, b keyComments) int { return len(b.keys) - len(a.keys) })
	return all
}

// keyOf returns the key of {"key", value} and "key": value.
func keyOf(element ast.Expr) string {
	switch x := element.(type) {
	case *ast.KeyValueExpr:
		return stringOf(x.Key)
	case *ast.CompositeLit:
		if x.Type == nil && len(x.Elts) == 2 {
			return stringOf(x.Elts[0])
		}
	}
	return ""
}
