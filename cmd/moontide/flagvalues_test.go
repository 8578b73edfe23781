package main

import "testing"

// Every flag with a range exists and is a number or a duration.
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
			}
			if !checked {
				t.Errorf("no verb has a flag --%s of numbers or durations", name)
			}
		}
	}
}
