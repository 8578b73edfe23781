// Package yaml reads small YAML or JSON texts by people, such as descriptions of traces and
// settings of runs, as nodes with their positions.
//
//	root, err := yaml.Parse(text, "chat.yaml")
//	if err != nil { ... } // chat.yaml:3:7: what is wrong
//	rate := root.At("rate") // nil if there is none
//
// It rejects what the parser would take too long for. [Read] gives the parser's own nodes.
package yaml

import (
	"errors"
	"fmt"
	"strings"

	goyaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// MaxText is the maximum length of a text in bytes.
	MaxText = 64 << 10
	// maxDepth bounds the nesting, because the parser's time is quadratic in it.
	maxDepth = 32
)

// Node is a value and its position: a line and column, or what else the caller says.
type Node struct {
	Place   string
	Kind    Kind
	Text    string  // of a scalar
	Items   []*Node // of a list
	Entries []Entry // of a mapping, in order
	Implied string  // for a mapping made from a scalar: its key
}

// Kind is what a node is.
type Kind int

// The kinds.
const (
	Scalar Kind = iota
	List
	Mapping
)

func (k Kind) String() string {
	return [...]string{"a single value", "a list", "a mapping"}[k]
}

// Entry is a member of a mapping.
type Entry struct {
	Key, Place string
	Value      *Node
}

// At returns the value of a key, or nil.
func (n *Node) At(key string) *Node {
	for _, e := range n.Entries {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// Set replaces or adds the value of a key.
func (n *Node) Set(key string, value *Node) {
	for i, e := range n.Entries {
		if e.Key == key {
			n.Entries[i] = Entry{key, value.Place, value}
			return
		}
	}
	n.Entries = append(n.Entries, Entry{key, value.Place, value})
}

// AsMapping expands a scalar to a mapping with one key.
func (n *Node) AsMapping(key string) *Node {
	m := &Node{Place: n.Place, Kind: Mapping, Implied: key}
	m.Set(key, n)
	return m
}

// Read parses YAML or JSON of at most [MaxText] bytes, without what the parser would take
// too long for, and calls read with its documents. Errors begin with the name.
func Read(text []byte, name string, read func(docs []*ast.DocumentNode) error) (err error) {
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
		var syntax *goyaml.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%s: %s", placeOf(name, syntax.Token), syntax.Message)
		}
		return fmt.Errorf("%s: not YAML: %q", name, err.Error())
	}
	return read(file.Docs)
}

// Parse parses YAML. Empty text is an empty mapping.
func Parse(text []byte, name string) (*Node, error) {
	root := &Node{Place: name, Kind: Mapping}
	err := Read(text, name, func(docs []*ast.DocumentNode) (err error) {
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
	return root, err
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
func nodeOf(from ast.Node, name string, depth int) (*Node, error) {
	n := &Node{Place: placeOf(name, from.GetToken())}
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: more than %d nested lists and mappings", n.Place, maxDepth)
	}
	switch from := from.(type) {
	case *ast.MappingNode:
		n.Kind = Mapping
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
				n.Place = place
			}
			n.Entries = append(n.Entries, Entry{key.Value, place, value})
		}
	case *ast.SequenceNode:
		n.Kind = List
		for _, v := range from.Values {
			item, err := nodeOf(v, name, depth+1)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, item)
		}
	case *ast.LiteralNode:
		n.Text = strings.TrimSpace(from.Value.Value)
	case ast.ScalarNode:
		switch from.Type() {
		case ast.AnchorType, ast.AliasType, ast.TagType:
			return nil, fmt.Errorf("%s: anchors, aliases and tags are not supported", n.Place)
		case ast.NullType:
		default:
			n.Text = from.GetToken().Value
		}
	default:
		return nil, fmt.Errorf("%s: neither a value, a list nor a mapping", n.Place)
	}
	return n, nil
}
