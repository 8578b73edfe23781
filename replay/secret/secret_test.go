package secret

import (
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://h/v1":             "http://h/v1",
		"http://h/v1?":            "http://h/v1?",
		"h?a=hush":                "h?a=" + Mask("hush"),
		"http://h?a=hush&b=&hush": "http://h?a=" + Mask("hush") + "&b=" + Mask("") + "&" + Mask("hush"),
		"http://u:hush@h:1/a#u":   "http://" + Mask("u:hush") + "@h:1/a#" + Mask("u"),
		"u:hush@h":                Mask("u:hush") + "@h",
		"old=http://h?a=b=hush":   "old=http://h?a=" + Mask("b=hush"),
		"h/sk-1234hush//v1":       "h/" + Mask("sk-1234hush") + "//v1",
		"http://u:hu/sh@h/a":      "http://" + Mask("u:hu/sh") + "@h/a",
		"http://h/v1/sk-1234hush": "http://h/v1/" + Mask("sk-1234hush"),
		"http://h/p/a1b2c3d4e5f6a7b8hush/v1/chat/completions":                           "http://h/p/" + Mask("a1b2c3d4e5f6a7b8hush") + "/v1/chat/completions",
		"https://a1b2c3d4e5f6a7b8.eu-west-1.cloud/openai/deployments/gpt-4o-2024-08-06": "https://a1b2c3d4e5f6a7b8.eu-west-1.cloud/openai/deployments/gpt-4o-2024-08-06",
	} {
		if got := URL(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if Mask("a") == Mask("b") {
		t.Error("other values have the same mask")
	}
	if Mask(Mask("a")) != Mask("a") {
		t.Error("a mask has another mask")
	}
}

func TestBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m", "temperature": 0, "stop":["x, y"], "top_k":5}`:                `{"model":"m", "temperature": 0, "stop":["x, y"], "top_k":5}`,
		`{"api_token":"hush","top_k": 5}`:                                            `{"api_token":"` + Mask("hush") + `","top_k":5}`,
		`{"a":{"model":"hush","n":[1,"hush",null,true]},"stream_options":{"x":"y"}}`: `{"a":{"model":"` + Mask("hush") + `","n":[1,"` + Mask("hush") + `",null,true]},"stream_options":{"x":"y"}}`,
		`{"key": "hush"`: Mask(`{"key": "hush"`),
		`"hush"`:         Mask(`"hush"`),
		`{} hush`:        Mask(`{} hush`),
		``:               Mask(``),
	} {
		if got := Body(body); got != want || strings.Contains(got, "hush") {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if Body(`{"a":"x"}`) == Body(`{"a":"y"}`) {
		t.Error("different bodies have equal masks")
	}
}

// What is recognized as a key is masked in any text, and nothing else is.
func TestMessage(t *testing.T) {
	for text, want := range map[string]string{
		"a sk-proj-12345678_x, b":               "a " + Mask("sk-proj-12345678_x") + ", b",
		"Bearer eyJhbGciOiJI.eyJzdWIiOi.c2ln-x": "Bearer " + Mask("eyJhbGciOiJI.eyJzdWIiOi.c2ln-x"),
		`"hf_abcdefgh1"`:                        `"` + Mask("hf_abcdefgh1") + `"`,
		"to http://me:hush@h/a and b@c":         "to http://" + Mask("me:hush") + "@h/a and b@c",
		"to http://" + Mask("me:hush") + "@h":   "to http://" + Mask("me:hush") + "@h",
		"to ftp://me:hu@sh@h/a@b":               "to ftp://" + Mask("me:hu@sh") + "@h/a@b",
		"open sk-12345678.jsonl":                "open " + Mask("sk-12345678") + ".jsonl",
		"http://h/a?b=c@d":                      "http://h/a?b=c@d",
		"disk-12345678 and task-abcdefghijk":    "disk-12345678 and task-abcdefghijk",
		"log-usage-xai-deepseek1.jsonl":         "log-usage-xai-deepseek1.jsonl",
		"sk-learn-datasets, xai-deepseek":       "sk-learn-datasets, xai-deepseek",
		"key=sk-12345678 sk-87654321":           "key=" + Mask("sk-12345678") + " " + Mask("sk-87654321"),
		"traces/conversation-0123456789abcdef0": "traces/conversation-0123456789abcdef0",
	} {
		if got := Message(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := Text("run-7 of 2026-11-28"); got != "run-7 of 2026-11-28" {
		t.Error(got)
	}
}
