package spec

import "strings"

// mistakes are what people do wrong in YAML, known by what the parser says to
// it. The first that fits is meant.
var mistakes = []struct{ parser, people string }{
	{"tab character", "a tab in the indentation: want spaces"},
	{"'\t'", "a tab in the indentation: want spaces"},
	{"is a reserved character", "a value cannot begin with this character: want quotes around it"},
	{"directive", "a value cannot begin with %: want quotes around it"},
	{"unexpected key name", "no key here: want key: value, with a space behind the colon"},
	{"non-map value", "no key here: want key: value, with a space behind the colon"},
	{"end character of", "a quote that does not end"},
	{"flow mapping end token", "a { without its }"},
	{"sequence end token", "a [ without its ]"},
	{"character corresponding to", "a bracket closes that was not opened"},
	{"mapping value is not allowed", "a key within a value: is a line indented too far, or a value with a colon not in quotes?"},
	{"is not allowed in this context", "the indentation fits nothing above: want the keys of a mapping, and the items of a list, below each other"},
}

// explained says what is wrong with a text in which the parser found something.
func explained(found string) string {
	if key, _, twice := strings.Cut(found, " already defined"); twice {
		return strings.TrimPrefix(key, "mapping key ") + " is given twice"
	}
	for _, m := range mistakes {
		if strings.Contains(found, m.parser) {
			return m.people
		}
	}
	return "not YAML: " + found
}
