package fidelity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits changes the bounds of aspects. The zero value changes none.
type Limits struct {
	factor float64 // of all bounds; 0 is 1
	bounds []limit
}

// limit is the bound of the aspects whose key starts with a prefix.
type limit struct {
	prefix string
	bound  float64
}

// ParseLimits parses a comma-separated list: 2x multiplies all bounds by 2, and
// isl_mean=5% or isl_mean=0.05 sets the bound of an aspect or, as in lru=4%, of all
// whose keys begin like that. Later entries override earlier ones.
func ParseLimits(text string) (l Limits, err error) {
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		key, value, set := strings.Cut(entry, "=")
		if !set {
			number, isFactor := strings.CutSuffix(entry, "x")
			if l.factor, err = strconv.ParseFloat(number, 64); err != nil || !isFactor || !(l.factor > 0) || math.IsInf(l.factor, 0) {
				return l, fmt.Errorf("%q is neither a factor such as 2x nor a bound such as isl_mean=5%%", entry)
			}
			continue
		}
		bound, err := parseShare(value)
		if err != nil {
			return l, fmt.Errorf("%q: %w", entry, err)
		}
		if !knownPrefix(key) {
			return l, fmt.Errorf("%q: no aspect is called %q: use one of %s", entry, key, strings.Join(keys(), ", "))
		}
		l.bounds = append(l.bounds, limit{key, bound})
	}
	return l, nil
}

func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a share such as 5%% or 0.05", text)
	}
	if percent {
		v /= 100
	}
	return v, nil
}

func keys() (keys []string) {
	for _, a := range Aspects() {
		keys = append(keys, a.Key)
	}
	return keys
}

// begins reports whether a key is the prefix or continues it after an underscore.
func begins(key, prefix string) bool {
	rest, found := strings.CutPrefix(key, prefix)
	return found && (rest == "" || rest[0] == '_')
}

func knownPrefix(prefix string) bool {
	for _, key := range keys() {
		if begins(key, prefix) {
			return true
		}
	}
	return false
}

// bound returns the bound of an aspect.
func (l *Limits) bound(a Aspect) float64 {
	bound := a.Bound
	if l.factor > 0 {
		bound *= l.factor
	}
	for _, of := range l.bounds {
		if begins(a.Key, of.prefix) {
			bound = of.bound
		}
	}
	return bound
}
