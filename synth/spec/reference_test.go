package spec

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reference is the page that documents the keys of a spec.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// firstCells returns the names in the first cells of the table rows below a
// heading, up to the next heading.
func firstCells(t *testing.T, page, heading string) (names []string) {
	t.Helper()
	_, section, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// The reference has a row for each key that Parse knows, and for no other.
func TestReferenceHasAllKeys(t *testing.T) {
	documented := firstCells(t, reference(t), "## Description reference")
	var known []string
	for mapping, keys := range keysOf {
		for _, key := range keys {
			switch name := strings.TrimPrefix(mapping+"."+key, "."); {
			case mapping == "clients" && slices.Contains(clientKeys, key): // as at the top level
			case keysOf[name] != nil && !slices.Contains(documented, name): // its keys are
			default:
				known = append(known, name)
			}
		}
	}
	same(t, known, documented)
}

// The reference has a row for each distribution, with its keys.
func TestReferenceHasAllDistributions(t *testing.T) {
	page := reference(t)
	same(t, slices.Collect(maps.Keys(families)), firstCells(t, page, "### Distributions"))
	for name, of := range families {
		cell := regexp.MustCompile("(?m)^\\|[^|]*`" + name + "`[^|]*\\|([^|]*)\\|").FindStringSubmatch(page)
		for _, key := range of.keys() {
			if bound := key == "min" || key == "max"; cell == nil || key != "distribution" && (!bound || name == "uniform") && !strings.Contains(cell[1], "`"+key+"`") {
				t.Errorf("%s: no key %s in %q", name, key, cell)
			}
		}
	}
}

func same(t *testing.T, known, documented []string) {
	t.Helper()
	slices.Sort(known)
	slices.Sort(documented)
	for _, name := range known {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is not documented", name)
		}
	}
	for i, name := range documented {
		if !slices.Contains(known, name) {
			t.Errorf("%s is documented and unknown", name)
		}
		if i > 0 && name == documented[i-1] {
			t.Errorf("%s is documented twice", name)
		}
	}
}
