package main

import (
	"math"
	"testing"

	"github.com/urfave/cli/v2"
)

// Every flag with a range exists, is a number or a duration, and refuses values out of it.
func TestFlagRangesTable(t *testing.T) {
	t.Parallel()
	for _, r := range flagRanges {
		for _, name := range r.flags {
			checked := false
			for _, verb := range allVerbs() {
				f := findFlag(verb.Flags, name)
				if f == nil || f.Names()[0] != name {
					continue
				}
				_, notNumber := checkValue(f, name, "1x")
				checked = checked || notNumber != nil
				if _, isText := f.(*cli.StringFlag); isText { // a list, or of a description
					continue
				}
				for value, x := range map[string]float64{"-1": -1, "0": 0, "2e18": 2e18, "NaN": math.NaN(), "inf": math.Inf(1)} {
					if _, err := checkValue(f, name, value); err == nil && !r.accepts(x) {
						t.Errorf("--%s accepts %s", name, value)
					}
				}
			}
			if !checked {
				t.Errorf("no verb has a flag --%s of numbers or durations", name)
			}
		}
	}
}
