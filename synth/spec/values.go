package spec

import (
	"math"
	"strings"

	"moontide/trace/stats"
)

// quantity is something that a law is about: which numbers make sense, and how
// they are spelled.
type quantity struct {
	key     string
	allowed span // of values
	min     float64
	whole   bool
	time    bool // in seconds; 30s is 30
	column  column
}

func (q quantity) unit() unit {
	if q.time {
		return seconds
	}
	return number
}

// leastMass is the probability below which bounds are taken for a mistake: a
// law that has to be cut so much is another law.
const leastMass = 1e-6

// positional are the parameters of each law in the order of the short form.
var positional = map[string][]string{
	"fixed":       {"value"},
	"uniform":     {"min", "max"},
	"normal":      {"mean", "std"},
	"lognormal":   {"mean", "cv"},
	"exponential": {"mean"},
	"weibull":     {"mean", "cv"},
	"geometric":   {"mean"},
	"file":        {"path"},
}

// cvs are the coefficients of variation that a law can have.
var cvs = map[string]span{"normal": {1e-6, 1000}, "lognormal": {1e-4, 100}, "weibull": {0.01, 20}}

const lawNames = "fixed, uniform, normal, lognormal, exponential, weibull, geometric, file, mixture"

// law reads the law at a key.
func (f fields) law(key string, q quantity) stats.Distribution {
	n := f.node.at(key)
	if n == nil {
		f.fail(f.node.place, "%s is missing", f.label(key))
		return stats.Fixed(0)
	}
	q.key = f.label(key)
	return f.reading.law(n, q)
}

// law reads a law and cuts it to its bounds.
func (r *reading) law(n *node, q quantity) stats.Distribution {
	f, name := r.lawFields(n, q)
	if r.failed() {
		return stats.Fixed(0)
	}
	low, high := f.bounds(q, name)
	l := f.shape(name, q, low, high)
	if r.failed() {
		return stats.Fixed(0)
	}
	if q.whole { // what rounds into the bounds lies within them
		low, high = low-0.5, math.Nextafter(high+0.5, low)
	}
	cut, mass := stats.Truncate(l, low, high)
	if mass < leastMass {
		r.fail(n.place, "%s has a probability of %.3g of a value %v%s: want bounds that the law reaches", q.key, max(mass, 0), f.boundsSpan(q, name), q.unit().plural)
		return stats.Fixed(0)
	}
	if q.whole {
		return stats.Rounded{Distribution: cut}
	}
	return cut
}

// lawFields returns the parameters of a law, whichever way it is written.
func (r *reading) lawFields(n *node, q quantity) (fields, string) {
	switch n.kind {
	case scalar:
		n = r.short(n, q)
	case list:
		r.fail(n.place, "%s is a list, want a number or a law: one of %s", q.key, lawNames)
		return fields{}, ""
	}
	if r.failed() {
		return fields{}, ""
	}
	f := fields{r, q.key, n}
	name := f.text("law")
	known := append([]string{"law", "min", "max"}, positional[name]...)
	switch name {
	case "normal":
		known = append(known, "cv")
	case "lognormal", "weibull":
		known = append(known, "std")
	case "mixture":
		known = append(known, "of")
	case "":
		r.fail(n.place, "%s has no law: want law: with one of %s", q.key, lawNames)
	default:
		if positional[name] == nil {
			r.fail(f.place("law"), "%s is not a law: want one of %s", quote(name), lawNames)
		}
	}
	return r.fields(n, q.key, known...), name
}

// short reads a law in one word: 3000, normal:1000:200, lognormal:800:1:max=4000.
func (r *reading) short(n *node, q quantity) *node {
	text := r.scalar(n, q.key)
	m := &node{place: n.place, inFile: n.inFile, kind: mapping}
	add := func(key, text string) {
		if m.at(key) != nil {
			r.fail(n.place, "%s of %s is given twice: %s", key, q.key, quote(text))
		}
		m.set(key, &node{place: n.place, inFile: n.inFile, text: text})
	}
	name, rest, _ := strings.Cut(text, ":")
	if _, isLaw := positional[name]; !isLaw {
		if _, ok := parseSeconds(name); !ok || rest != "" {
			r.fail(n.place, "%s is neither a number nor a law: %s, want one of %s", q.key, quote(text), lawNames)
		}
		name, rest = "fixed", text
	}
	add("law", name)
	switch name {
	case "fixed":
		m.unsaid = "value"
	case "file": // whatever its name is
		m.unsaid = "path"
		add("path", rest)
		return m
	}
	names := positional[name]
	for i, word := range strings.Split(rest, ":") {
		key, value, named := strings.Cut(word, "=")
		switch {
		case named:
			add(key, value)
		case i < len(names):
			add(names[i], word)
		default:
			r.fail(n.place, "%s has too many parameters: %s, want %s:%s", q.key, quote(text), name, strings.Join(names, ":"))
		}
	}
	return m
}

// bounds reads min and max.
func (f fields) bounds(q quantity, name string) (low, high float64) {
	low = f.value("min", q.min, q, q.allowed)
	high = f.value("max", q.allowed.high, q, q.allowed)
	if name == "uniform" && !f.failed() && !(f.has("min") && f.has("max")) {
		f.fail(f.node.place, "%s is uniform and needs min and max", q.key)
	}
	if low > high {
		f.fail(f.place("min"), "%s has min %s above max %s%s", q.key, plain(low), plain(high), q.unit().plural)
	}
	return low, high
}

func (f fields) boundsSpan(q quantity, name string) span {
	low, high := f.bounds(q, name)
	return span{low, high}
}

// value is a parameter in the quantity's own unit.
func (f fields) value(key string, otherwise float64, q quantity, allowed span) float64 {
	switch {
	case q.time:
		return f.seconds(key, otherwise, allowed)
	case q.whole && (key == "min" || key == "max" || key == "value"):
		return float64(f.whole(key, int(otherwise), allowed))
	}
	return f.number(key, otherwise, allowed)
}

// needed is value for parameters without which there is no law.
func (f fields) needed(key string, q quantity, allowed span) float64 {
	if !f.has(key) {
		f.fail(f.node.place, "%s needs %s", q.key, key)
		return 0
	}
	return f.value(key, 0, q, allowed)
}

// shape reads the parameters of a law, without its bounds.
func (f fields) shape(name string, q quantity, low, high float64) stats.Distribution {
	positive := span{1e-9, 1e12}
	switch name {
	case "fixed":
		return stats.Fixed(f.needed("value", q, q.allowed))
	case "uniform":
		if q.whole {
			return stats.Uniform{Low: low - 0.5, High: high + 0.5}
		}
		if low == high {
			return stats.Fixed(low)
		}
		return stats.Uniform{Low: low, High: high}
	case "geometric":
		return stats.Geometric{Mean: f.needed("mean", q, span{1, 1e12})}
	case "exponential":
		return stats.Exponential(f.needed("mean", q, positive))
	case "file":
		return stats.Empirical{Sample: stats.Of(f.column("path", q))}
	case "mixture":
		return f.mixture(q)
	}
	mean := f.needed("mean", q, positive)
	spread := f.spread(q, mean, cvs[name])
	if f.failed() {
		return stats.Fixed(0)
	}
	switch name {
	case "lognormal":
		return stats.NewLognormal(mean, spread/mean)
	case "weibull":
		return stats.NewWeibull(mean, spread/mean)
	default:
		return stats.Normal{Mean: mean, Std: spread}
	}
}

// spread is the standard deviation, which may be given through the coefficient
// of variation.
func (f fields) spread(q quantity, mean float64, cvs span) float64 {
	f.onlyOne("cv", "std")
	if f.has("cv") {
		return f.number("cv", 0, cvs) * mean
	}
	if !f.has("std") {
		f.fail(f.node.place, "%s needs cv or std", q.key)
	}
	std := f.value("std", 0, q, span{0, 1e12})
	if cv := std / mean; !f.failed() && !(cv >= cvs.low && cv <= cvs.high) {
		f.fail(f.place("std"), "%s has std / mean out of range: %.4g, want %v", q.key, cv, cvs)
	}
	return std
}

// mixture reads the parts of a mixture. Each is cut by bounds of its own.
func (f fields) mixture(q quantity) stats.Distribution {
	of := f.node.at("of")
	if of == nil || of.kind != list || len(of.items) == 0 || len(of.items) > 100 {
		f.fail(f.place("of"), "%s needs of: a list of 1 to 100 laws, each with its share", q.key)
		return stats.Fixed(0)
	}
	var parts []stats.Component
	var shares []float64
	for _, item := range of.items {
		if item.kind != mapping {
			f.fail(item.place, "a part of %s is %v, want a law with its share: {share: 0.5, law: fixed, value: 100}", q.key, item.kind)
			break
		}
		share := fields{f.reading, q.key, item}.needed("share", quantity{key: q.key}, span{1e-9, 1})
		if law := item.at("law"); law != nil && law.text == "mixture" {
			f.fail(law.place, "%s has a mixture within a mixture: want its parts in one list", q.key)
		}
		rest := &node{place: item.place, inFile: item.inFile, kind: mapping}
		for _, e := range item.entries {
			if e.key != "share" {
				rest.entries = append(rest.entries, e)
			}
		}
		parts = append(parts, stats.Component{Weight: share, Distribution: f.reading.law(rest, q)})
		shares = append(shares, share)
	}
	f.shares(of.place, q.key, shares)
	if f.failed() {
		return stats.Fixed(0)
	}
	return stats.NewMixture(parts)
}
