package openai

import (
	"strings"
	"testing"
)

func TestMaskBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m", "temperature": 0, "stop":["x, y"], "top_k":5}`:                `{"model":"m", "temperature": 0, "stop":["x, y"], "top_k":5}`,
		`{"api_token":"hush","top_k": 5}`:                                            `{"api_token":"` + mask("hush") + `","top_k":5}`,
		`{"a":{"model":"hush","n":[1,"hush",null,true]},"stream_options":{"x":"y"}}`: `{"a":{"model":"` + mask("hush") + `","n":[1,"` + mask("hush") + `",null,true]},"stream_options":{"x":"y"}}`,
		`{"key": "hush"`: mask(`{"key": "hush"`),
		`"hush"`:         mask(`"hush"`),
		`{} hush`:        mask(`{} hush`),
		``:               mask(``),
	} {
		if got := MaskBody(body); got != want || strings.Contains(got, "hush") {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if MaskBody(`{"a":"x"}`) == MaskBody(`{"a":"y"}`) {
		t.Error("different bodies have equal masks")
	}
}
