package openai

import (
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/openai/poll"
	"moontide/trace"
)

func taken(t *testing.T, events ...string) *stream {
	t.Helper()
	s := &stream{}
	at := poll.Arrival{Time: time.Now()}
	for _, event := range events {
		if err := s.take([]byte(event), at); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
	}
	return s
}

func TestTokenChunks(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]bool{
		`{"choices":[{"text":" tide"}]}`:                                                   true,
		`{"choices":[{"text":" "}]}`:                                                       true,
		`{"choices":[{"text":"\n\""}]}`:                                                    true,
		`{"choices":[{"text":"null"}]}`:                                                    true,
		`{"choices":[{"text":" tide","finish_reason":"length"}]}`:                          true,
		`{"choices":[{"delta":{"content":"tide"}}]}`:                                       true,
		`{"choices":[{"delta":{"role":"assistant","content":"tide"}}]}`:                    true,
		`{"choices":[{"delta":{"content":null,"reasoning_content":"hm"}}]}`:                true,
		`{"choices":[{"delta":{"reasoning":"hm"}}]}`:                                       true,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}`: true,
		`{"choices":[{"delta":{"content":[{"type":"text","text":"tide"}]}}]}`:              true,
		`{"choices":[{"text":""},{"text":"tide"}]}`:                                        true,
		`{"choices":[{"text":"tide"}],"usage":{"completion_tokens":1}}`:                    true,
		`{"unknown":{"choices":[]},"choices":[{"x":[1,{}],"text":"tide"}],"y":null}`:       true,
		`{"choices":[{"text":""}]}`:                                                        false,
		`{"choices":[{"text":null}]}`:                                                      false,
		`{"choices":[{"delta":{"role":"assistant"}}]}`:                                     false,
		`{"choices":[{"delta":{"role":"assistant","content":""}}]}`:                        false,
		`{"choices":[{"delta":{"content":null,"reasoning":null,"tool_calls":null}}]}`:      false,
		`{"choices":[{"delta":{"tool_calls":[]}}]}`:                                        false,
		`{"choices":[{"delta":{"tool_calls":[ ]}}]}`:                                       false,
		`{"choices":[{"delta":{},"finish_reason":"stop"}]}`:                                false,
		`{"choices":[{"delta":null}]}`:                                                     false,
		`{"choices":[],"usage":{"completion_tokens":5}}`:                                   false,
		`{"choices":null}`:            false,
		`{"usage":null,"error":null}`: false,
		`{}`:                          false,
		``:                            false,
		`[DONE]`:                      false,
	} {
		if s := taken(t, event); s.first.IsZero() == want {
			t.Errorf("%s: token chunk is %v, want %v", event, !want, want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	some := trace.Some[int]
	for name, tc := range map[string]struct {
		usages []string
		want   replay.Counts
	}{
		"at the end":         {[]string{`{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}`}, replay.Counts{Input: some(7), Output: some(5)}},
		"with each event":    {[]string{`{"prompt_tokens":7,"completion_tokens":1}`, `{"prompt_tokens":7,"completion_tokens":2}`}, replay.Counts{Input: some(7), Output: some(2)}},
		"in two parts":       {[]string{`{"prompt_tokens":7}`, `null`, `{"completion_tokens":2}`}, replay.Counts{Input: some(7), Output: some(2)}},
		"zero":               {[]string{`{"prompt_tokens":0,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}`}, replay.Counts{Input: some(0), Output: some(0), Cached: some(0)}},
		"cached: OpenAI":     {[]string{`{"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0}}`}, replay.Counts{Cached: some(4)}},
		"cached: null":       {[]string{`{"prompt_tokens":7,"completion_tokens":null,"prompt_tokens_details":null}`}, replay.Counts{Input: some(7)}},
		"cached: unknown":    {[]string{`{"prompt_tokens_details":{"cached_tokens":null}}`}, replay.Counts{}},
		"cached: DeepSeek":   {[]string{`{"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":3}`}, replay.Counts{Cached: some(4)}},
		"cached: Moonshot":   {[]string{`{"cached_tokens":4}`}, replay.Counts{Cached: some(4)}},
		"cached: SGLang":     {[]string{`{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":4},"reasoning_tokens":0}`}, replay.Counts{Input: some(7), Cached: some(4), Reasoning: some(0)}},
		"reasoning: OpenAI":  {[]string{`{"completion_tokens":9,"completion_tokens_details":{"reasoning_tokens":6,"audio_tokens":0}}`}, replay.Counts{Output: some(9), Reasoning: some(6)}},
		"reasoning: SGLang":  {[]string{`{"reasoning_tokens":6,"completion_tokens_details":null}`}, replay.Counts{Reasoning: some(6)}},
		"reasoning: both":    {[]string{`{"completion_tokens_details":{"reasoning_tokens":5.0},"reasoning_tokens":6}`}, replay.Counts{Reasoning: some(5)}},
		"reasoning: unknown": {[]string{`{"completion_tokens_details":{"reasoning_tokens":null}}`}, replay.Counts{}},
		"negative":           {[]string{`{"prompt_tokens":-1}`}, replay.Counts{}},
		"none":               {[]string{`null`}, replay.Counts{}},
	} {
		var events []string
		for _, u := range tc.usages {
			events = append(events, `{"choices":[],"usage":`+u+`}`)
		}
		if got := taken(t, events...).counts; got != tc.want {
			t.Errorf("%s: counts %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"a","code":1}}`: "a",
		`{"error":{"code":7}}`:               `{"code":7}`,
		`{"error":"a"}`:                      "a",
		`{"error":null,"message":"b"}`:       "b",
		`{"detail":"c"}`:                     "c",
		`{"other":1}`:                        `{"other":1}`,
		`<html>`:                             "<html>",
		"<html>\n<head><title> 502 Bad Gateway &amp; more\n</title></head></html>": "502 Bad Gateway & more",
	} {
		if got := errorText(500, []byte(body), ""); got != "HTTP status 500: "+want {
			t.Errorf("%s reads %q, want %q", body, got, want)
		}
	}
	if got := errorText(500, nil, ""); got != "HTTP status 500" {
		t.Errorf("no text reads %q", got)
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\r\nb\tc\x00\x7f\x1b[31m": "a  b c   [31m",
		"\u2028\u202e\u0085\u009b":  "    ",
		"\xff é 漢":                  "\ufffd é 漢",
		strings.Repeat("é", 199):    strings.Repeat("é", 199),
		strings.Repeat("é", 300):    strings.Repeat("é", 200) + "...",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q reads %q, want %q", text, got, want)
		}
	}
}
