package log

import (
	"testing"
	"time"
)

// A time may be a date, or a number whose unit is found by its size.
func TestParseTime(t *testing.T) {
	want := time.Date(2023, 11, 14, 22, 13, 20, 250_000_000, time.UTC)
	for _, text := range []string{
		"1700000000.25", "1700000000250", "1700000000250000", "1700000000250000000", "1.70000000025e9",
		"2023-11-14T22:13:20.25Z", "2023-11-14T23:13:20.250000+01:00", "2023-11-14 22:13:20.250000", "2023-11-14T22:13:20.250", "2023-11-14 22:13:20.25+00:00",
	} {
		if got, ok := parseTime([]byte(text), "time"); !ok || !got.Equal(want) {
			t.Errorf("%s is read as %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"0", "0.0", "0001-01-01T00:00:00Z"} {
		if got, ok := parseTime([]byte(text), "time"); !ok || !got.IsZero() {
			t.Errorf("%q is read as %v, %v, not as no time", text, got, ok)
		}
	}
	for _, text := range []string{"yesterday", "5", "-1700000000", "NaN", "Inf", "1e300", "1969-12-31T00:00:00Z", "99999999999"} {
		if got, ok := parseTime([]byte(text), "time"); ok {
			t.Errorf("%s is read as %v", text, got)
		}
	}
	if _, ok := parseTime([]byte("1700000000"), "nanos"); ok {
		t.Error("seconds are taken for nanoseconds")
	}
}

// Usage is read as each server writes it: the input includes cached tokens.
func TestUsage(t *testing.T) {
	for usage, want := range map[string][4]int{
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}`: {9, 4, 3, 2},
		`{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":3}}`:                                                          {9, 4, 3, 0},
		`{"input_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4,"output_tokens":4}`:                                         {9, 4, 3, 0},
		`{"prompt_tokens":9,"cache_read_input_tokens":3,"completion_tokens":"4"}`:                                                                  {9, 4, 3, 0},
		`{}`: {},
	} {
		m, err := membersOf([]byte(usage))
		if err != nil {
			t.Fatal(err)
		}
		var wrong error
		f := &fields{members: m, err: &wrong}
		var u Usage
		u.read(f)
		if got := [4]int{u.Input.Value, u.Output.Value, u.Cached.Value, u.Reasoning.Value}; got != want || wrong != nil {
			t.Errorf("%s is read as %v: %v", usage, got, wrong)
		}
	}
}

// Only names and paths of calls that generate text are requests.
func TestGenerates(t *testing.T) {
	for name, want := range map[string]bool{
		"acompletion": true, "atext_completion": true, "aresponses": true, "anthropic_messages": true, "/v1/chat/completions": true,
		"http://gw/v1/messages?beta=true": true, "chat": true, "generate_content": true,
		"aembedding": false, "/v1/embeddings": false, "arerank": false, "image_generation": false, "aget_responses": false, "/v1/files": false, "create_batch": false,
	} {
		if generates(name) != want {
			t.Errorf("%s generates text: %v", name, !want)
		}
	}
}
