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

// MaxText is the length in bytes of the longest description that is read.
const MaxText = 64 << 10

// A description is small; these bounds, too, keep a hostile one from costing
// more than a moment.
const (
	maxLine  = 4 << 10 // bytes
	maxDepth = 32      // lists and mappings within each other
)

// node is a value of a description with the place it has there: a line of the
// file, or the flag that stands for it.
type node struct {
	place   string
	inFile  bool
	kind    kind
	text    string  // of a scalar
	items   []*node // of a list
	entries []entry // of a mapping, in their order
	unsaid  string  // of a mapping made of a single value: the key that this has
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

// entry is a key of a mapping and what it stands for.
type entry struct {
	key, place string
	value      *node
}

func (n *node) at(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// set replaces the value of a key, or adds it.
func (n *node) set(key string, value *node) {
	for i, e := range n.entries {
		if e.key == key {
			n.entries[i] = entry{key, value.place, value}
			return
		}
	}
	n.entries = append(n.entries, entry{key, value.place, value})
}

// inFull is the mapping that a single value is short for: this value at a key
// that is not written.
func (n *node) inFull(key string) *node {
	m := &node{place: n.place, inFile: n.inFile, kind: mapping, unsaid: key}
	m.set(key, n)
	return m
}

// parseText reads YAML. An empty text is an empty mapping.
func parseText(text []byte, name string) (root *node, err error) {
	if err := bounded(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	// The parser is a library's and the text anybody's.
	defer func() {
		if recover() != nil {
			root, err = nil, fmt.Errorf("%s: not YAML", name)
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("%s: %s", placeOf(name, syntax.Token), explained(syntax.Message))
		}
		return nil, fmt.Errorf("%s: not YAML: %q", name, err.Error())
	}
	root = &node{place: name, inFile: true, kind: mapping}
	for i, doc := range file.Docs {
		if i > 0 {
			return nil, fmt.Errorf("%s: more than one document", name)
		}
		if doc.Body == nil {
			continue
		}
		if root, err = (&converter{name}).node(doc.Body, 0); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// bounded refuses what the parser would take long over: its time grows with
// the square of the nesting.
func bounded(text []byte) error {
	if len(text) > MaxText {
		return fmt.Errorf("longer than %d KiB", MaxText>>10)
	}
	depth, line := 0, 0
	for _, c := range text {
		line++
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '\n':
			line = 0
		}
		if depth > maxDepth {
			return fmt.Errorf("more than %d brackets within each other", maxDepth)
		}
		if line > maxLine {
			return fmt.Errorf("a line is longer than %d KiB", maxLine>>10)
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

// converter makes nodes of what the YAML parser found.
type converter struct{ name string }

func (c *converter) node(from ast.Node, depth int) (*node, error) {
	n := &node{place: placeOf(c.name, from.GetToken()), inFile: true}
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: more than %d lists and mappings within each other", n.place, maxDepth)
	}
	switch from := from.(type) {
	case *ast.MappingNode:
		n.kind = mapping
		for i, v := range from.Values {
			e, err := c.entry(v, depth)
			if err != nil {
				return nil, err
			}
			if i == 0 && !from.IsFlowStyle { // the token is its colon
				n.place = e.place
			}
			n.entries = append(n.entries, e)
		}
	case *ast.SequenceNode:
		n.kind = list
		for _, v := range from.Values {
			item, err := c.node(v, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case *ast.LiteralNode:
		n.text = strings.TrimSpace(from.Value.Value)
	case ast.ScalarNode:
		n.text = from.GetToken().Value
		if from.Type() == ast.NullType {
			n.text = ""
		}
		if t := from.Type(); t == ast.AnchorType || t == ast.AliasType || t == ast.TagType {
			return nil, fmt.Errorf("%s: anchors, aliases and tags are not understood here", n.place)
		}
	default:
		return nil, fmt.Errorf("%s: neither a value, a list nor a mapping", n.place)
	}
	return n, nil
}

func (c *converter) entry(from *ast.MappingValueNode, depth int) (entry, error) {
	e := entry{place: placeOf(c.name, from.Key.GetToken())}
	key, ok := from.Key.(*ast.StringNode)
	if !ok {
		return e, fmt.Errorf("%s: a key is not plain text", e.place)
	}
	e.key = key.Value
	var err error
	e.value, err = c.node(from.Value, depth+1)
	return e, err
}
