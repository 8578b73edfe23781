package spec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// MaxText is the maximum length of a spec in bytes.
	MaxText = 64 << 10
	// maxDepth bounds the nesting, because the parser's time is quadratic in it.
	maxDepth = 32
)

// node is a value of a spec and its position: a line and column, or a setting.
// Values come from several places and apply to several clients, so
// they are looked up by key instead of decoded into a struct.
type node struct {
	place   string
	kind    kind
	text    string  // of a scalar
	items   []*node // of a list
	entries []entry // of a mapping, in order
	implied string  // for a mapping made from a scalar: its key
}

type kind int

const (
	scalar kind = iota
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"a single value", "a list", "a mapping"}[k]
}

type entry struct {
	key, place string
	value      *node
}

// at returns the value of a key, or nil.
func (n *node) at(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// set replaces or adds the value of a key.
func (n *node) set(key string, value *node) {
	for i, e := range n.entries {
		if e.key == key {
			n.entries[i] = entry{key, value.place, value}
			return
		}
	}
	n.entries = append(n.entries, entry{key, value.place, value})
}

// asMapping expands a scalar to a mapping with one key.
func (n *node) asMapping(key string) *node {
	m := &node{place: n.place, kind: mapping, implied: key}
	m.set(key, n)
	return m
}

// ReadYAML parses YAML or JSON of at most [MaxText] bytes, without what the parser would take
// too long for, and calls read with its documents. Errors begin with the name.
func ReadYAML(text []byte, name string, read func(docs []*ast.DocumentNode) error) (err error) {
	if err := checkBounds(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { // malformed input panics in the parser, or leaves nodes out
		if recover() != nil {
			err = fmt.Errorf("%s: not YAML", name)
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%s: %s", placeOf(name, syntax.Token), syntax.Message)
		}
		return fmt.Errorf("%s: not YAML: %q", name, err.Error())
	}
	return read(file.Docs)
}

// parseYAML parses YAML. Empty text is an empty mapping.
func parseYAML(text []byte, name string) (*node, error) {
	root := &node{place: name, kind: mapping}
	return root, ReadYAML(text, name, func(docs []*ast.DocumentNode) (err error) {
		for i, doc := range docs {
			if i > 0 {
				return fmt.Errorf("%s: more than one document", name)
			}
			if doc.Body != nil {
				root, err = nodeOf(doc.Body, name, 0)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// checkBounds rejects text that the parser would take too long for.
func checkBounds(text []byte) error {
	if len(text) > MaxText {
		return fmt.Errorf("longer than %d KiB", MaxText>>10)
	}
	depth, lists := 0, 0 // lists are those that begin in a line: - - - 1
	begins := true
	for i, c := range text {
		switch {
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth = max(depth-1, 0)
		case c == '\n' || c == '\r':
			lists, begins = 0, true
		case begins && (c == '-' || c == '?') && i+1 < len(text) && text[i+1] <= ' ':
			lists++
		case c > ' ':
			begins = false
		}
		if max(depth, lists) > maxDepth {
			return fmt.Errorf("more than %d nested lists or mappings", maxDepth)
		}
	}
	return nil
}

func placeOf(name string, t *token.Token) string {
	if t == nil || t.Position == nil {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, t.Position.Line, t.Position.Column)
}

// nodeOf converts a node of the YAML parser.
func nodeOf(from ast.Node, name string, depth int) (*node, error) {
	n := &node{place: placeOf(name, from.GetToken())}
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: more than %d nested lists and mappings", n.place, maxDepth)
	}
	switch from := from.(type) {
	case *ast.MappingNode:
		n.kind = mapping
		for i, v := range from.Values {
			place := placeOf(name, v.Key.GetToken())
			key, ok := v.Key.(*ast.StringNode)
			if !ok {
				return nil, fmt.Errorf("%s: a key is not plain text", place)
			}
			value, err := nodeOf(v.Value, name, depth+1)
			if err != nil {
				return nil, err
			}
			if i == 0 && !from.IsFlowStyle { // the mapping's token is its colon
				n.place = place
			}
			n.entries = append(n.entries, entry{key.Value, place, value})
		}
	case *ast.SequenceNode:
		n.kind = list
		for _, v := range from.Values {
			item, err := nodeOf(v, name, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.LiteralNode:
		n.text = strings.TrimSpace(from.Value.Value)
	case ast.ScalarNode:
		switch from.Type() {
		case ast.AnchorType, ast.AliasType, ast.TagType:
			return nil, fmt.Errorf("%s: anchors, aliases and tags are not supported", n.place)
		case ast.NullType:
		default:
			n.text = from.GetToken().Value
		}
	default:
		return nil, fmt.Errorf("%s: neither a value, a list nor a mapping", n.place)
	}
	return n, nil
}
