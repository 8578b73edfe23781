package fidelity

import (
	"os"
	"strings"
	"testing"
)

// The page on synthesis lists every aspect.
func TestPageHasAspects(t *testing.T) {
	page, err := os.ReadFile("../../synth/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Aspects() {
		if !strings.Contains(string(page), "`"+a.Key+"`") {
			t.Errorf("synth/README.md lacks %s", a.Key)
		}
	}
}
