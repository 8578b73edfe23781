package spec

import "testing"

// TestBlockSizeFitsSharedPrefixes: all of a shared prefix is shared if any block
// size allows it and the spec sets none.
func TestBlockSizeFitsSharedPrefixes(t *testing.T) {
	const lengths = "isl: 100000\nosl: 1\n"
	for text, want := range map[string]struct {
		size          int
		drawn, shared float64
	}{
		"":                                 {512, 0, 0},
		"shared: {tokens: 2000}":           {500, 2000, 2000},
		"shared: {count: 9, tokens: 1024}": {512, 1024, 1024},
		"shared: {tokens: 400}":            {400, 400, 400},
		"shared: {tokens: 997}":            {512, 997, 512}, // a prime
		"shared: [{tokens: 2000}, {count: 3, tokens: 300}]":          {100, 2300, 2300},
		"shared: [{tokens: 997}, {tokens: 500}]":                     {512, 1497, 1024},
		"block_size: 512\nshared: {tokens: 2000}":                    {512, 2000, 1536},
		"shared: {tokens: 'uniform:2000:2100'}\nblock_size: 3000":    {3000, -1, 0},
		"clients: [{share: 1, shared: {tokens: 2000}}]":              {500, 2000, 2000},
		"clients: [{share: .5, shared: {tokens: 600}}, {share: .5}]": {300, 600, 600},
		"shared: {tokens: 1000}\nsessions: {turns: 3, max_isl: 1e6}": {500, 1000, 1000},
	} {
		s, err := Parse([]byte(lengths+text), Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		drawn, shared := s.SharedTokens()
		if want.drawn < 0 {
			drawn = want.drawn
		}
		if s.BlockSize() != want.size || drawn != want.drawn || shared != want.shared {
			t.Errorf("%s: blocks of %d tokens share %v of %v, want %+v", text, s.BlockSize(), shared, drawn, want)
		}
	}
	for text, want := range map[string]int{"": 16, "shared: {tokens: 1000}": 20, "shared: {tokens: 1024}": 16, "block_size: 64": 64} {
		if s, err := Parse([]byte(lengths+text), Options{BlockSize: 16}); err != nil || s.BlockSize() != want {
			t.Errorf("%s of an engine: blocks of %d tokens, error %v; want %d", text, s.BlockSize(), err, want)
		}
	}
}
