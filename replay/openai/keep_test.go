package openai

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"moontide/replay/openai/poll"
)

// keptOf is what is kept of a stream of events.
func keptOf(wantIDs bool, events ...string) *kept {
	s := stream{kept: &kept{wantIDs: wantIDs}}
	for _, event := range events {
		data := []byte(event)
		s.take(data, poll.Arrival{})
		for i := range data { // it is gone after the call
			data[i] = '"'
		}
	}
	return s.kept
}

func choice(members string) string { return `{"choices":[{"index":0,` + members + `}]}` }

func generated(text, ids string, n int) string {
	return fmt.Sprintf(`{"text":%q,"output_ids":%s,"meta_info":{"finish_reason":null,"prompt_tokens":2,"completion_tokens":%d}}`, text, ids, n)
}

func TestKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events   []string
		ids      []uint32 // or:
		text     string
		thoughts string
		err      string
	}{
		"ids of several tokens": {ids: []uint32{5, 6, 4294967295, 7},
			events: []string{choice(`"text":" a","prompt_token_ids":[1,2],"token_ids":[5]`), choice(`"text":" b c","token_ids":[6, 4294967295]`), choice(`"text":"","token_ids":[7],"finish_reason":"length"`), `{"choices":[],"usage":{"completion_tokens":4}}`}},
		"ids beside an unusual reason": {ids: []uint32{5, 6},
			events: []string{choice(`"text":" a","token_ids":[5]`), choice(`"Text":" b","token_ids":[6],"finish_reason":"eos_token"`)}},
		"ids too large": {ids: []uint32{}, err: "not 32-bit unsigned integers", events: []string{choice(`"text":" a","token_ids":[5]`), choice(`"text":" a","token_ids":[4294967296]`)}},
		"text":          {text: ` a\n\"b\"`, events: []string{choice(`"text":" a\n"`), choice(`"text":null`), choice(`"text":"\"b\""`)}},
		"a pair in two": {text: `\ud83d\ude00`, events: []string{choice(`"delta":{"content":"\ud83d"}`), choice(`"delta":{"content":"\ude00"}`)}},
		"reasoning apart": {text: "a b", thoughts: "hm hm",
			events: []string{choice(`"delta":{"role":"assistant","content":"","reasoning_content":"hm"}`), choice(`"delta":{"content":null,"reasoning":" hm"}`), choice(`"delta":{"content":"a"}`), choice(`"delta":{"content":" b"},"finish_reason":"content_filter"`)}},
		"a call of a tool":      {err: "calls a tool", events: []string{choice(`"delta":{"content":"a"}`), choice(`"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`)}},
		"no call":               {text: "a", events: []string{choice(`"delta":{"content":"a","tool_calls":[]}`), choice(`"delta":{"tool_calls":null}`)}},
		"content in parts":      {err: "not text", events: []string{choice(`"delta":{"content":[{"type":"text","text":"a"}]}`)}},
		"responses":             {text: " tide tide", thoughts: "hm", events: dataOf(streamsOf[Responses].stream)},
		"a call in responses":   {err: "calls a tool", events: []string{`{"type":"response.function_call_arguments.delta","delta":"{"}`}},
		"messages":              {text: " tide tide", thoughts: "hm", events: dataOf(streamsOf[Messages].stream)},
		"a call in messages":    {err: "calls a tool", events: []string{`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`}},
		"all ids in each event": {ids: []uint32{5, 6, 7}, events: []string{generated(" a", "[5]", 1), generated(" a b", "[5,6]", 2), generated(" a b", "[5,6]", 2), generated(" a b c", "[5,6,7]", 3)}},
		"new ids in each event": {ids: []uint32{5, 6, 7, 8, 9}, events: []string{generated(" a", "[5]", 1), generated(" a", "[6,7]", 3), generated("", "[]", 3), generated(" a", "[8,9]", 5)}},
	} {
		k := keptOf(tc.ids != nil, tc.events...)
		if tc.err != "" {
			if k.err == nil || !strings.Contains(k.err.Error(), tc.err) || k.text != nil {
				t.Errorf("%s: error %v, text %q; want %q", name, k.err, k.text, tc.err)
			}
			continue
		}
		if k.err != nil || !slices.Equal(k.ids, tc.ids) || string(k.text) != tc.text || string(k.reasoning) != tc.thoughts {
			t.Errorf("%s: ids %v, text %s, reasoning %s, error %v", name, k.ids, k.text, k.reasoning, k.err)
		}
	}
}

// dataOf returns the data of a stream's events.
func dataOf(stream string) (events []string) {
	for line := range strings.SplitSeq(stream, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			events = append(events, data)
		}
	}
	return events
}

// An answer that is too long is not kept.
func TestKeptAnswerIsBounded(t *testing.T) {
	t.Parallel()
	events := slices.Repeat([]string{choice(`"text":"` + strings.Repeat("a", maxKeptAnswer/4) + `"`)}, 5)
	if k := keptOf(false, events...); k.err != errKeptTooLong || cap(k.text) > 0 {
		t.Errorf("error %v, %d bytes", k.err, cap(k.text))
	}
}
