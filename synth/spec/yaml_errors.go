package spec

import "strings"

// yamlMistakes maps errors of the YAML parser to their usual cause. The first
// match wins.
var yamlMistakes = []struct{ reported, mistake string }{
	{"tab character", "tab in the indentation: use spaces"},
	{"'\t'", "tab in the indentation: use spaces"},
	{"is a reserved character", "a value cannot start with this character: quote it"},
	{"directive", "a value cannot start with %: quote it"},
	{"unexpected key name", "not a key: want key: value, with a space after the colon"},
	{"non-map value", "not a key: want key: value, with a space after the colon"},
	{"end character of", "unclosed quote"},
	{"flow mapping end token", "unclosed {"},
	{"sequence end token", "unclosed ["},
	{"character corresponding to", "unmatched closing bracket"},
	{"mapping value is not allowed", "key inside a value: is a line indented too far, or is a value with a colon not quoted?"},
	{"is not allowed in this context", "the indentation matches nothing above: align the keys of a mapping and the items of a list"},
}

func explainYAML(reported string) string {
	if key, _, twice := strings.Cut(reported, " already defined"); twice {
		return strings.TrimPrefix(key, "mapping key ") + " is set twice"
	}
	for _, m := range yamlMistakes {
		if strings.Contains(reported, m.reported) {
			return m.mistake
		}
	}
	return "not YAML: " + reported
}
