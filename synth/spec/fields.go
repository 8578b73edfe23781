package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/synth"
	"moontide/trace/jsonscan"
	"moontide/trace/yaml"
)

// reader converts nodes into a [Spec].
type reader struct {
	options   Options
	blockSize int // tokens
	prefixes  int // shared prefixes so far
}

// fail ends the reading at the first error.
func (r *reader) fail(place, format string, args ...any) {
	synth.Fail("%s: %w", place, fmt.Errorf(format, args...))
}

// fields holds the entries of a mapping.
type fields struct {
	*reader
	name string // of the mapping, for messages; "" at the top
	node *yaml.Node
}

// fields reads a mapping of keysOf and rejects unknown keys.
func (r *reader) fields(n *yaml.Node, name string) fields {
	return r.fieldsOf(n, name, keysOf[name])
}

func (r *reader) fieldsOf(n *yaml.Node, name string, known []string) fields {
	f := fields{r, name, n}
	if n.Kind != yaml.Mapping {
		r.fail(n.Place, "%s is %v, want a mapping with keys of %s", cmp.Or(name, "the spec"), n.Kind, strings.Join(known, ", "))
	}
	for _, e := range n.Entries {
		if !slices.Contains(known, e.Key) {
			r.fail(e.Place, "%s is not a known key: want one of %s", quoteKey(f.label(e.Key)), strings.Join(known, ", "))
		}
	}
	return f
}

// label returns the full name of a key. An implied key has the name of its
// mapping.
func (f fields) label(key string) string {
	switch {
	case f.name == "":
		return key
	case key == f.node.Implied:
		return f.name
	}
	return f.name + "." + key
}

func (f fields) has(key string) bool { return f.node.At(key) != nil }

// place returns the position of a key's value, or else of the mapping.
func (f fields) place(key string) string {
	if n := f.node.At(key); n != nil {
		return n.Place
	}
	return f.node.Place
}

// onlyOne rejects two keys that contradict each other.
func (f fields) onlyOne(a, b string) {
	if f.has(a) && f.has(b) {
		f.fail(f.place(b), "%s and %s are both set: want only one", f.label(a), f.label(b))
	}
}

// text returns the scalar at a key, or "" if there is none.
func (f fields) text(key string) string {
	n := f.node.At(key)
	if n == nil {
		return ""
	}
	return f.scalar(n, f.label(key))
}

func (r *reader) scalar(n *yaml.Node, label string) string {
	switch {
	case n.Kind != yaml.Scalar:
		r.fail(n.Place, "%s is %v, want a single value", label, n.Kind)
	case n.Text == "":
		r.fail(n.Place, "%s has no value", label)
	}
	return n.Text
}

// span is the allowed range of a number.
type span struct{ low, high float64 }

func (s span) contains(x float64) bool { return x >= s.low && x <= s.high }

func (s span) String() string {
	return fmt.Sprintf("from %s to %s", plain(s.low), plain(s.high))
}

// plain formats a number, with an exponent only if it is extreme.
func plain(x float64) string {
	if math.Abs(x) < 1e15 && (math.Abs(x) >= 1e-9 || x == 0) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// unit is a notation for numbers.
type unit struct {
	what, plural string
	parse        func(text string) (float64, bool)
}

var (
	number  = unit{"a number", "", parseNumber}
	seconds = unit{"a time (90s, 10m, or seconds)", " seconds", parseSeconds}
)

func parseNumber(text string) (float64, bool) {
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

func parseSeconds(text string) (float64, bool) {
	if x, ok := parseNumber(text); ok {
		return x, true
	}
	d, err := time.ParseDuration(text)
	return d.Seconds(), err == nil
}

// number returns the number at a key, or otherwise if there is none.
func (f fields) number(key string, otherwise float64, allowed span) float64 {
	return f.quantity(key, otherwise, allowed, number)
}

// seconds is like number for times: 90, 90s and 1.5m are valid.
func (f fields) seconds(key string, otherwise float64, allowed span) float64 {
	return f.quantity(key, otherwise, allowed, seconds)
}

func (f fields) quantity(key string, otherwise float64, allowed span, in unit) float64 {
	n := f.node.At(key)
	if n == nil {
		return otherwise
	}
	return f.parse(n, f.label(key), allowed, in)
}

func (r *reader) parse(n *yaml.Node, label string, allowed span, in unit) float64 {
	text := r.scalar(n, label)
	x, ok := in.parse(text)
	if !ok {
		r.fail(n.Place, "%s is not %s: %s", label, in.what, quote(text))
	}
	if !allowed.contains(x) {
		r.fail(n.Place, "%s is out of range: %s, want %v%s", label, text, allowed, in.plural)
	}
	return x
}

// whole is like number for whole numbers.
func (f fields) whole(key string, otherwise int, allowed span) int {
	x := f.number(key, float64(otherwise), allowed)
	if x != math.Trunc(x) {
		f.fail(f.place(key), "%s is not a whole number: %s", f.label(key), plain(x))
	}
	return int(x)
}

// choice returns the word at a key, which must be one of those allowed.
func (f fields) choice(key, otherwise string, allowed ...string) string {
	if !f.has(key) {
		return otherwise
	}
	text := f.text(key)
	if !slices.Contains(allowed, text) {
		f.fail(f.place(key), "%s is not one of %s: %s", f.label(key), strings.Join(allowed, ", "), quote(text))
	}
	return text
}

// checkShares rejects shares that do not add up to 1.
func (r *reader) checkShares(place, label string, shares []float64) {
	var sum float64
	for _, s := range shares {
		sum += s
	}
	if math.Abs(sum-1) > 1e-6 {
		r.fail(place, "the shares of %s add up to %s, want 1", label, strconv.FormatFloat(sum, 'g', 6, 64))
	}
}

// quoteKey is quote for a key.
func quoteKey(key string) string {
	if !jsonscan.IsName(key) {
		return fmt.Sprintf("a key of %d bytes", len(key))
	}
	return quote(key)
}

// quote formats a value for an error: on one line and shortened.
func quote(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}

// clientKeys lists the keys of a client. At the top level they apply to all
// clients.
var clientKeys = []string{"isl", "unique_isl", "osl", "correlation", "shared", "sessions"}

// keysOf lists the keys of each mapping of a spec except distributions, whose
// keys follow from families.
var keysOf = map[string][]string{
	"":               slices.Concat([]string{"num_requests", "duration", "block_size", "seed", "rate", "arrival", "clients"}, clientKeys),
	"clients":        slices.Concat([]string{"name", "share", "rate", "arrival"}, clientKeys),
	"rate":           {"for", "at", "from", "to"},
	"arrival":        {"process", "cv", "bursts", "cycle"},
	"arrival.bursts": {"on", "off", "ratio"},
	"arrival.cycle":  {"period", "amplitude", "peak"},
	"shared":         {"count", "tokens", "zipf"},
	"sessions":       {"turns", "think_time", "new_tokens", "max_isl", "timestamps", "ttft", "tpot"},
}
