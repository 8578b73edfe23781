package spec

import (
	"math"
	"slices"
	"strings"

	"moontide/trace/stats"
	"moontide/trace/yaml"
)

// quantity describes the values of a distribution: name, unit and range.
type quantity struct {
	label   string
	allowed span
	min     float64 // lower bound, unless the spec has one
	whole   bool
	in      unit
}

// minMass is the smallest probability mass that bounds may keep. Truncating
// more would give a different distribution.
const minMass = 1e-6

// family describes the parameters of a distribution, except for its bounds.
type family struct {
	positional []string // in the order of the short form; nil if it has none
	cvs        span     // allowed coefficients of variation
}

var families = map[string]family{
	"fixed":       {positional: []string{"value"}},
	"uniform":     {positional: []string{"min", "max"}},
	"normal":      {[]string{"mean", "std"}, span{1e-6, 1000}},
	"lognormal":   {[]string{"mean", "cv"}, span{1e-4, 100}},
	"exponential": {positional: []string{"mean"}},
	"geometric":   {positional: []string{"mean"}},
	"mixture":     {},
}

// keys returns the keys of the full form.
func (f family) keys() []string {
	if f.positional == nil {
		return []string{"distribution", "min", "max", "of"}
	}
	bounds := slices.DeleteFunc([]string{"min", "max"}, func(key string) bool { return slices.Contains(f.positional, key) })
	return slices.Concat([]string{"distribution"}, bounds, f.positional)
}

const distributionNames = "fixed, uniform, normal, lognormal, exponential, geometric, mixture"

// distribution reads the distribution at a key.
func (f fields) distribution(key string, q quantity) stats.Distribution {
	q.label = f.label(key)
	n := f.node.At(key)
	if n == nil {
		f.fail(f.node.Place, "%s is missing", q.label)
	}
	return f.reader.distribution(n, q)
}

// distribution reads a distribution and truncates it to its bounds.
func (r *reader) distribution(n *yaml.Node, q quantity) stats.Distribution {
	f, name := r.distributionFields(n, q)
	bounds := f.bounds(q, name)
	d := f.untruncated(name, q, bounds)
	low, high := bounds.low, bounds.high
	if q.whole { // include values that round to the bounds
		low, high = low-0.5, math.Nextafter(high+0.5, low)
	}
	truncated, mass := stats.Truncate(d, low, high)
	if mass < minMass {
		r.fail(n.Place, "%s has a probability of %.3g for values %v%s: want bounds that the distribution reaches", q.label, max(mass, 0), bounds, q.in.plural)
	}
	if q.whole {
		return stats.Rounded{Distribution: truncated}
	}
	return truncated
}

// distributionFields returns the name and the parameters of a distribution in
// short or full form.
func (r *reader) distributionFields(n *yaml.Node, q quantity) (fields, string) {
	switch n.Kind {
	case yaml.Scalar:
		n = r.shortForm(n, q)
	case yaml.List:
		r.fail(n.Place, "%s is a list, want a number or a distribution: one of %s", q.label, distributionNames)
	}
	f := fields{r, q.label, n}
	name := f.text("distribution")
	of, isKnown := families[name]
	switch {
	case name == "":
		r.fail(n.Place, "%s has no distribution: want distribution: with one of %s", q.label, distributionNames)
	case !isKnown:
		r.fail(f.place("distribution"), "%s is not a distribution: want one of %s", quote(name), distributionNames)
	}
	return r.fieldsOf(n, q.label, of.keys()), name
}

// shortForm reads 3000, normal:1000:200 or lognormal:800:1:max=4000.
func (r *reader) shortForm(n *yaml.Node, q quantity) *yaml.Node {
	text := r.scalar(n, q.label)
	m := &yaml.Node{Place: n.Place, Kind: yaml.Mapping}
	add := func(key, text string) {
		if m.At(key) != nil {
			r.fail(n.Place, "%s of %s is set twice: %s", key, q.label, quote(text))
		}
		m.Set(key, &yaml.Node{Place: n.Place, Text: text})
	}
	name, rest, _ := strings.Cut(text, ":")
	names := families[name].positional
	if names == nil {
		if _, ok := parseSeconds(name); !ok || rest != "" {
			r.fail(n.Place, "%s is neither a number nor a distribution: %s, want one of %s", q.label, quote(text), distributionNames)
		}
		name, rest, names = "fixed", text, families["fixed"].positional
	}
	add("distribution", name)
	if name == "fixed" {
		m.Implied = "value"
	}
	for i, word := range strings.Split(rest, ":") {
		key, value, named := strings.Cut(word, "=")
		switch {
		case named:
			add(key, value)
		case i < len(names):
			add(names[i], word)
		default:
			r.fail(n.Place, "%s has too many parameters: %s, want %s:%s", q.label, quote(text), name, strings.Join(names, ":"))
		}
	}
	return m
}

// bounds reads min and max.
func (f fields) bounds(q quantity, name string) span {
	b := span{f.parameter("min", q.min, q, q.allowed), f.parameter("max", q.allowed.high, q, q.allowed)}
	if name == "uniform" && !(f.has("min") && f.has("max")) {
		f.fail(f.node.Place, "%s is uniform and needs min and max", q.label)
	}
	if b.low > b.high {
		f.fail(f.place("min"), "%s has min %s above max %s%s", q.label, plain(b.low), plain(b.high), q.in.plural)
	}
	return b
}

// parameter returns a parameter in the quantity's unit, or otherwise if it is
// not set.
func (f fields) parameter(key string, otherwise float64, q quantity, allowed span) float64 {
	if q.whole && (key == "min" || key == "max" || key == "value") {
		return float64(f.whole(key, int(otherwise), allowed))
	}
	return f.quantity(key, otherwise, allowed, q.in)
}

// required is like parameter for keys that must be set.
func (f fields) required(key string, q quantity, allowed span) float64 {
	if !f.has(key) {
		form := ""
		if name := f.text("distribution"); len(families[name].positional) > 0 {
			form = "; the short form is " + strings.Join(append([]string{name}, families[name].positional...), ":")
		}
		f.fail(f.node.Place, "%s needs %s%s", q.label, key, form)
	}
	return f.parameter(key, 0, q, allowed)
}

// untruncated reads the parameters of a distribution, except for its bounds.
func (f fields) untruncated(name string, q quantity, bounds span) stats.Distribution {
	positive := span{1e-9, 1e12}
	switch name {
	case "fixed":
		return stats.Fixed(f.required("value", q, q.allowed))
	case "uniform":
		if q.whole {
			return stats.Uniform{Low: bounds.low - 0.5, High: bounds.high + 0.5}
		}
		if bounds.low == bounds.high {
			return stats.Fixed(bounds.low)
		}
		return stats.Uniform{Low: bounds.low, High: bounds.high}
	case "geometric":
		return stats.Geometric{Mean: f.required("mean", q, span{1, 1e12})}
	case "exponential":
		return stats.Exponential(f.required("mean", q, positive))
	case "mixture":
		return f.mixture(q)
	}
	mean := f.required("mean", q, positive)
	cvs := families[name].cvs
	if name == "normal" {
		std := f.required("std", q, span{0, 1e12})
		if cv := std / mean; !cvs.contains(cv) {
			f.fail(f.place("std"), "%s has std / mean out of range: %.4g, want %v", q.label, cv, cvs)
		}
		return stats.Normal{Mean: mean, Std: std}
	}
	return stats.NewLognormal(mean, f.required("cv", quantity{label: q.label, in: number}, cvs))
}

// mixture reads the parts of a mixture. Each has separate bounds.
func (f fields) mixture(q quantity) stats.Distribution {
	of := f.node.At("of")
	if of == nil || of.Kind != yaml.List || len(of.Items) == 0 || len(of.Items) > 100 {
		f.fail(f.place("of"), "%s needs of: a list of 1 to 100 distributions, each with its share", q.label)
	}
	var parts []stats.Component
	var shares []float64
	for _, item := range of.Items {
		if item.Kind != yaml.Mapping {
			f.fail(item.Place, "a part of %s is %v, want a distribution with its share: {share: 0.5, distribution: fixed, value: 100}", q.label, item.Kind)
		}
		share := fields{f.reader, q.label, item}.required("share", quantity{label: q.label, in: number}, span{1e-9, 1})
		if name := item.At("distribution"); name != nil && name.Text == "mixture" {
			f.fail(name.Place, "%s has a nested mixture: put all parts in one list", q.label)
		}
		part := &yaml.Node{Place: item.Place, Kind: yaml.Mapping}
		for _, e := range item.Entries {
			if e.Key != "share" {
				part.Entries = append(part.Entries, e)
			}
		}
		parts = append(parts, stats.Component{Weight: share, Distribution: f.reader.distribution(part, q)})
		shares = append(shares, share)
	}
	f.checkShares(of.Place, q.label, shares)
	return stats.NewMixture(parts)
}
