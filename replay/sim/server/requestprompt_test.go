package server

import "testing"

func TestElements(t *testing.T) {
	for array, want := range map[string]int{
		`[]`:                        0,
		`[1]`:                       1,
		` [1, 2,3 ]`[1:]:            3,
		`[[1,2],{"a":1,"b":[3,4]}]`: 2,
		`["a,b","[","]","{",1]`:     5,
		`["a\",b","\\",1]`:          3,
	} {
		if got := elements(raw(array)); got != want {
			t.Errorf("%s: %d elements, want %d", array, got, want)
		}
	}
}
