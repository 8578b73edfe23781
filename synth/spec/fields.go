package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reading turns nodes into what they mean. It keeps the first thing that is
// wrong, and answers with zero values from then on, so that who reads need not
// ask after each value.
type reading struct {
	open     opener
	block    int // tokens
	prefixes int // shared ones so far
	values   int // taken from files so far
	err      error
}

func (r *reading) failed() bool { return r.err != nil }

func (r *reading) fail(place, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", place, fmt.Errorf(format, args...))
	}
}

// fields are the entries of one mapping.
type fields struct {
	*reading
	name string // of the mapping, for messages; "" at the top
	node *node
}

// fields reads a mapping and refuses keys other than the known ones.
func (r *reading) fields(n *node, name string, known ...string) fields {
	f := fields{r, name, n}
	if n.kind != mapping {
		what := name
		if what == "" {
			what = "the description"
		}
		r.fail(n.place, "%s is %v, want a mapping with keys of %s", what, n.kind, strings.Join(known, ", "))
		f.node = &node{place: n.place, kind: mapping}
	}
	for _, e := range f.node.entries {
		if !slices.Contains(known, e.key) {
			r.fail(e.place, "%s is not a key here: want one of %s", quote(f.label(e.key)), strings.Join(known, ", "))
		}
	}
	return f
}

// label is the full name of a key, and of a key that is not written the name of
// what it is in.
func (f fields) label(key string) string {
	switch {
	case f.name == "":
		return key
	case key == f.node.unsaid:
		return f.name
	}
	return f.name + "." + key
}

func (f fields) has(key string) bool { return f.node.at(key) != nil }

// place is where a key stands, or else its mapping.
func (f fields) place(key string) string {
	if n := f.node.at(key); n != nil {
		return n.place
	}
	return f.node.place
}

// onlyOne refuses two keys that contradict each other.
func (f fields) onlyOne(a, b string) {
	if f.has(a) && f.has(b) {
		f.fail(f.place(b), "%s and %s are both given: want one of them", f.label(a), f.label(b))
	}
}

// text returns the scalar at a key, or "" where there is none.
func (f fields) text(key string) string {
	n := f.node.at(key)
	if n == nil {
		return ""
	}
	return f.scalar(n, f.label(key))
}

func (r *reading) scalar(n *node, label string) string {
	switch {
	case n.kind != scalar:
		r.fail(n.place, "%s is %v, want a single value", label, n.kind)
	case n.text == "":
		r.fail(n.place, "%s has no value", label)
	}
	return n.text
}

// span is an interval of numbers that a key may have.
type span struct{ low, high float64 }

func (s span) String() string {
	return fmt.Sprintf("from %s to %s", plain(s.low), plain(s.high))
}

// plain spells a number as people write it.
func plain(x float64) string {
	if math.Abs(x) < 1e15 && (math.Abs(x) >= 1e-9 || x == 0) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// number returns the number at a key, or otherwise where there is none.
func (f fields) number(key string, otherwise float64, allowed span) float64 {
	n := f.node.at(key)
	if n == nil {
		return otherwise
	}
	return f.reading.number(n, f.label(key), allowed)
}

func (r *reading) number(n *node, label string, allowed span) float64 {
	return r.parse(n, label, allowed, number)
}

// seconds is number for times: 90, 90s and 1.5m are the same.
func (f fields) seconds(key string, otherwise float64, allowed span) float64 {
	n := f.node.at(key)
	if n == nil {
		return otherwise
	}
	return f.parse(n, f.label(key), allowed, seconds)
}

// unit is a way to write a number.
type unit struct {
	what, plural string
	read         func(text string) (float64, bool)
}

var (
	number  = unit{"a number", "", parseNumber}
	seconds = unit{"a time (90s, 10m, or seconds)", " seconds", parseSeconds}
)

func (r *reading) parse(n *node, label string, allowed span, in unit) float64 {
	text := r.scalar(n, label)
	if r.failed() {
		return 0
	}
	x, ok := in.read(text)
	if !ok {
		r.fail(n.place, "%s is not %s: %s", label, in.what, quote(text))
		return 0
	}
	if !(x >= allowed.low && x <= allowed.high) {
		r.fail(n.place, "%s is out of range: %s, want %v%s", label, text, allowed, in.plural)
		return 0
	}
	return x
}

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

// whole is number for whole numbers.
func (f fields) whole(key string, otherwise int, allowed span) int {
	x := f.number(key, float64(otherwise), allowed)
	if x != math.Trunc(x) {
		f.fail(f.place(key), "%s is not a whole number: %s", f.label(key), plain(x))
		return otherwise
	}
	return int(x)
}

// choice returns the word at a key, which must be one of a few.
func (f fields) choice(key, otherwise string, allowed ...string) string {
	if !f.has(key) {
		return otherwise
	}
	text := f.text(key)
	if !f.failed() && !slices.Contains(allowed, text) {
		f.fail(f.place(key), "%s is not one of %s: %s", f.label(key), strings.Join(allowed, ", "), quote(text))
	}
	return text
}

// shares refuses shares that do not add up to 1.
func (r *reading) shares(place, label string, shares []float64) {
	var sum float64
	for _, s := range shares {
		sum += s
	}
	if math.Abs(sum-1) > 1e-6 {
		r.fail(place, "the shares of %s add up to %s, want 1", label, strconv.FormatFloat(sum, 'g', 6, 64))
	}
}

// quote shows a value in an error on one line, no longer than a glance.
func quote(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
