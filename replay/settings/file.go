package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"moontide/replay/secret"
	"moontide/trace"
	"moontide/trace/yaml"
)

const (
	// fileVersion is the version of the settings in files.
	fileVersion = 1
	versionKey  = "version"
	maxRecord   = 16 << 20 // bytes of a run.json
)

// MarshalJSON returns an object of the settings that were set, by name with underscores, in
// the order of the table, without secrets. [Read] reads it.
func (s Settings) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{%q:%d`, versionKey, fileVersion)
	for _, row := range s.given() {
		if row.Here {
			continue
		}
		value, err := json.Marshal(row.plain(&s))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, `,%q:%s`, key(row.Name), value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// key returns the name of a setting in files.
func key(name string) string { return strings.ReplaceAll(name, "-", "_") }

// plain returns the value of a setting for JSON.
func (row *Setting) plain(s *Settings) any {
	switch field := row.Field(s).(type) {
	case *bool:
		return *field
	case *int:
		return *field
	case *uint64:
		return *field
	case *float64, *trace.Opt[float64]:
		if text := row.Text(s); text != "inf" {
			return json.Number(text)
		}
	}
	if texts := row.masked(s); row.Repeatable() {
		return texts
	}
	return row.Masked(s)
}

// UnmarshalJSON reads what MarshalJSON has written. Unknown settings, of a later version,
// are ignored.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	*s = Settings{}
	for i := range Table {
		row := &Table[i]
		value, found := members[key(row.Name)]
		if !found {
			continue
		}
		var texts []string
		if err := json.Unmarshal(value, &texts); err != nil {
			var one string
			if json.Unmarshal(value, &one) != nil {
				one = string(value)
			}
			texts = []string{one}
		}
		for _, text := range texts {
			if secret.Masked(text) && !row.readsMasks() { // it cannot be parsed
				continue
			}
			if err := s.Set(row.Name, text, ""); err != nil {
				return wrong("{%s} %v", row.Name, err)
			}
		}
	}
	return nil
}

// readsMasks reports whether a masked value can be parsed.
func (row *Setting) readsMasks() bool {
	_, compound := row.Field(new(Settings)).(Value)
	return !compound || row.Name == "header"
}

// Entry is a setting in a file.
type Entry struct {
	Name   string
	Texts  []string // several for a list
	Place  string   // file and line
	Masked bool     // the value may be secret and is unknown: it must be set again
}

// Read reads a configuration file: YAML or JSON with a mapping of settings, or the run.json
// of a run. Names and lines of what is wrong are in the error.
func Read(path string) ([]Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a named pipe would block
		return nil, fmt.Errorf("reading settings: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	if len(text) > yaml.MaxText {
		if entries, ok := ofLargeRun(text, path); ok {
			return entries, nil
		}
	}
	entries, err := parse(text, path)
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	return entries, nil
}

// ofLargeRun returns the settings of a run.json that is too large for the parser of YAML: of
// a run with a long body. They have no lines.
func ofLargeRun(text []byte, name string) (entries []Entry, ok bool) {
	var run struct {
		Settings *Settings
		Outcome  *struct{ Part json.RawMessage }
	}
	if err := json.Unmarshal(text, &run); err != nil || run.Settings == nil || run.Outcome == nil || run.Outcome.Part != nil {
		return nil, false
	}
	for _, row := range run.Settings.given() {
		texts := row.texts(run.Settings)
		entries = append(entries, Entry{row.Name, texts, name, secret.Masked(strings.Join(texts, " "))})
	}
	return entries, true
}

func parse(text []byte, name string) (entries []Entry, err error) {
	err = yaml.Read(text, name, func(docs []*ast.DocumentNode) error {
		if len(docs) != 1 || docs[0].Body == nil {
			return fmt.Errorf("%s: has no settings", name)
		}
		entries, err = entriesOf(docs[0].Body, name)
		return err
	})
	return entries, err
}

func entriesOf(root ast.Node, name string) (entries []Entry, err error) {
	members, err := mapping(root, name)
	if err != nil {
		return nil, err
	}
	if inner, ofRun := ofRun(members); ofRun {
		if isPart(members) {
			return nil, fmt.Errorf("%s: is of a part of a run: repeat the run with the settings of its command, and its part", name)
		}
		if inner == nil {
			return nil, fmt.Errorf("%s: is the run.json of an older version, without settings: repeat its command", name)
		}
		if members, err = mapping(inner, name); err != nil {
			return nil, err
		}
	} else if inner != nil {
		return nil, fmt.Errorf("%s: has settings beside other things, as the file of a set does: name the run.json of one of its runs", name)
	}
	for _, m := range members {
		place := fmt.Sprintf("%s:%d", name, m.Key.GetToken().Position.Line)
		key := m.Key.GetToken().Value
		texts, err := scalars(m.Value)
		row := Find(key)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %.60s %w", place, key, err)
		case key == versionKey && (len(texts) != 1 || texts[0] != fmt.Sprint(fileVersion)):
			return nil, fmt.Errorf("%s: has settings of version %.20s, and this moontide reads version %d", place, strings.Join(texts, ","), fileVersion)
		case key == versionKey:
			continue
		case row == nil:
			return nil, fmt.Errorf("%s: there is no setting %.60q%s", place, key, suggestion(key))
		}
		if slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == row.Name }) {
			return nil, fmt.Errorf("%s: %s is set twice", place, key)
		}
		entries = append(entries, Entry{row.Name, texts, place, secret.Masked(strings.Join(texts, " "))})
	}
	return entries, nil
}

// ofRun reports whether a file is a run.json. settings is nil in those of older versions.
func ofRun(members []*ast.MappingValueNode) (settings ast.Node, ofRun bool) {
	for _, m := range members {
		switch m.Key.GetToken().Value {
		case "settings":
			settings = m.Value
		case "outcome", "schedule_sha256":
			ofRun = true
		}
	}
	return settings, ofRun
}

// isPart reports whether a run.json is that of a part of a run.
func isPart(members []*ast.MappingValueNode) bool {
	for _, m := range members {
		if m.Key.GetToken().Value != "outcome" {
			continue
		}
		outcome, err := mapping(m.Value, "")
		return err == nil && slices.ContainsFunc(outcome, func(m *ast.MappingValueNode) bool { return m.Key.GetToken().Value == "part" })
	}
	return false
}

func mapping(node ast.Node, name string) ([]*ast.MappingValueNode, error) {
	switch node := node.(type) {
	case *ast.MappingNode:
		return node.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}, nil
	}
	return nil, fmt.Errorf("%s:%d: want a mapping of settings, such as rate: 4", name, node.GetToken().Position.Line)
}

// scalars returns a value as texts: one, or those of a list.
func scalars(node ast.Node) (texts []string, err error) {
	if list, ok := node.(*ast.SequenceNode); ok {
		for _, item := range list.Values {
			if _, nested := item.(*ast.SequenceNode); nested {
				return nil, errors.New("has a list in a list")
			}
			one, err := scalars(item)
			if err != nil {
				return nil, err
			}
			texts = append(texts, one...)
		}
		return texts, nil
	}
	switch node := node.(type) {
	case *ast.StringNode:
		return []string{node.Value}, nil
	case *ast.LiteralNode:
		return []string{node.Value.Value}, nil
	case *ast.InfinityNode:
		return []string{strings.Replace(node.GetToken().Value, ".", "", 1)}, nil // .inf
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return []string{node.GetToken().Value}, nil
	case *ast.NullNode:
		return nil, errors.New("has no value")
	}
	return nil, errors.New("is neither a single value nor a list of them")
}
