package main

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// schemaObject is a JSON Schema.
type schemaObject = map[string]any

// schemaOf returns the schema of a Go type as encoding/json writes it.
func schemaOf[T any](t *testing.T) schemaObject {
	t.Helper()
	return (&typeSchemas{sources{}}).of(t, reflect.TypeFor[T]())
}

// typeSchemas makes schemas of Go types. Descriptions are the types' comments.
type typeSchemas struct{ sources }

func (s *typeSchemas) of(t *testing.T, typ reflect.Type) schemaObject {
	t.Helper()
	schema := s.kind(t, typ)
	if text, values := s.typeComment(t, typ); typ.Kind() == reflect.String && values != nil {
		schema["enum"] = values
	} else if text != "" {
		schema["description"] = text
	}
	return schema
}

func (s *typeSchemas) kind(t *testing.T, typ reflect.Type) schemaObject {
	t.Helper()
	switch typ.Kind() {
	case reflect.String:
		return schemaObject{"type": "string"}
	case reflect.Bool:
		return schemaObject{"type": "boolean"}
	case reflect.Float64:
		return schemaObject{"type": "number"}
	case reflect.Int, reflect.Int64:
		return schemaObject{"type": "integer"}
	case reflect.Uint64:
		return schemaObject{"type": "integer", "minimum": 0}
	case reflect.Array:
		return schemaObject{"type": "array", "items": s.of(t, typ.Elem()), "minItems": typ.Len(), "maxItems": typ.Len()}
	case reflect.Slice:
		return schemaObject{"type": []any{"array", "null"}, "items": s.of(t, typ.Elem())}
	case reflect.Map:
		return schemaObject{"type": "object", "additionalProperties": s.of(t, typ.Elem())}
	case reflect.Pointer:
		schema := s.of(t, typ.Elem())
		schema["type"] = []any{schema["type"], "null"}
		return schema
	case reflect.Struct:
		if typ == reflect.TypeFor[time.Time]() {
			return schemaObject{"type": "string", "format": "date-time"}
		}
		properties, required := schemaObject{}, []string{}
		s.fields(t, typ, properties, &required)
		return closedObject(properties, required)
	}
	t.Fatalf("no schema of %v", typ)
	return nil
}

// closedObject returns the schema of an object without other members.
func closedObject(properties schemaObject, required []string) schemaObject {
	return schemaObject{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func (s *typeSchemas) fields(t *testing.T, typ reflect.Type, properties schemaObject, required *[]string) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			s.fields(t, embedded, properties, required)
			continue
		case name == "-" || name == "" || !f.IsExported():
			continue
		}
		schema := s.of(t, f.Type)
		if text := s.comment(t, typ, f.Name); text != "" {
			schema["description"] = text
		}
		properties[name] = schema
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// sources holds parsed packages by their path.
type sources map[string]packageComments

type packageComments struct {
	comments map[string]string // of Type, Type.Field and Type.Method, each in one line
	values   map[string][]any  // string constants by type
}

// comment returns the comment of a field or method.
func (s sources) comment(t *testing.T, typ reflect.Type, field string) string {
	t.Helper()
	return s.of(t, typ).comments[typ.Name()+"."+field]
}

// typeComment returns a type's comment and its string constants.
func (s sources) typeComment(t *testing.T, typ reflect.Type) (string, []any) {
	t.Helper()
	found := s.of(t, typ)
	return found.comments[typ.Name()], found.values[typ.Name()]
}

// of returns what is known about the package of a type: nothing outside the module.
func (s sources) of(t *testing.T, typ reflect.Type) packageComments {
	t.Helper()
	pkg := typ.PkgPath()
	switch dir, own := strings.CutPrefix(pkg, "moontide/"); {
	case typ.Name() == "" || strings.Contains(typ.Name(), "["):
		return packageComments{}
	case !own:
		return packageComments{}
	case s[pkg].comments == nil:
		s[pkg] = parseComments(t, filepath.Join(root, dir))
	}
	return s[pkg]
}

func parseComments(t *testing.T, dir string) packageComments {
	t.Helper()
	found := packageComments{map[string]string{}, map[string][]any{}}
	paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, declared := range parseGo(t, token.NewFileSet(), path).Decls {
			if method, ok := declared.(*ast.FuncDecl); ok && method.Recv != nil {
				if typ, ok := method.Recv.List[0].Type.(*ast.Ident); ok {
					found.comments[typ.Name+"."+method.Name.Name] = oneLine(method.Doc.Text())
				}
			}
			group, ok := declared.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					found.addType(spec, oneLine(group.Doc.Text()+spec.Doc.Text()))
				case *ast.ValueSpec:
					found.addValue(spec)
				}
			}
		}
	}
	return found
}

func parseGo(t *testing.T, files *token.FileSet, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func (c packageComments) addType(spec *ast.TypeSpec, comment string) {
	c.comments[spec.Name.Name] = comment
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			c.comments[spec.Name.Name+"."+name.Name] = oneLine(field.Doc.Text() + field.Comment.Text())
		}
	}
}

func (c packageComments) addValue(spec *ast.ValueSpec) {
	typ, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) != 1 {
		return
	}
	if text := stringOf(spec.Values[0]); text != "" {
		c.values[typ.Name] = append(c.values[typ.Name], text)
	}
}

// stringOf returns the value of a string literal, "" for any other expression.
func stringOf(x ast.Expr) string {
	literal, ok := x.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// docLink matches a link to a Go name in a comment.
var docLink = regexp.MustCompile(`\[([A-Z][\w.]*|\w+\.[A-Z]\w*)\]`)

// oneLine removes line breaks and the brackets of links from a comment.
func oneLine(comment string) string {
	text := string((&doc.Package{}).Text(comment))
	return docLink.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
}
