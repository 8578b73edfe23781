package openai

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/openai/poll"
	"moontide/replay/transcript"
	"moontide/trace"
	"moontide/trace/tracetest"
)

// talks answers the n-th request with the n-th of answers and keeps the bodies.
type talks struct {
	mu      sync.Mutex
	bodies  []string
	answers []string
}

func (s *talks) serve(p *peer) {
	always(func(p *peer, _ *http.Request, body string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies = append(s.bodies, body)
		p.say(s.answers[len(s.bodies)-1])
	})(p)
}

// body returns the body of a request.
func (s *talks) body(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[n]
}

// countedAnswer is an answer of events and a usage.
func countedAnswer(input, output int, events ...string) string {
	all := ""
	for _, event := range append(events, fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, input, output)) {
		all += "data: " + event + "\n\n"
	}
	return streamed + inChunk(all+theEnd) + lastChunk
}

// turnsOf are turns of a session with these input lengths. They have one block.
func turnsOf(lengths ...int) (rows []trace.Request) {
	for _, isl := range lengths {
		rows = append(rows, trace.Request{SessionID: "s", InputLength: isl, OutputLength: 4, HashIDs: []uint64{1}})
	}
	return rows
}

func liveWith(t *testing.T, rows []trace.Request, edits ...func(*Config)) func(*Config) {
	graph := tracetest.Graph(t, rows...)
	return func(cfg *Config) {
		cfg.Answers, cfg.Graph = LiveAnswers, graph
		for _, edit := range edits {
			edit(cfg)
		}
	}
}

// converse sends the rows in order and returns the outcomes, up to the first row that
// cannot be prepared.
func converse(c *Client, rows []trace.Request) (all []replay.Outcome, err error) {
	for i, r := range rows {
		call, err := c.Prepare(r, i)
		if err != nil {
			return all, err
		}
		all = append(all, call.Send(context.Background()))
	}
	return all, nil
}

// turnText is a message of a body.
type turnText struct{ Role, Content string }

func messagesIn(t *testing.T, body string) []turnText {
	t.Helper()
	var sent struct{ Messages []turnText }
	if err := stdjson.Unmarshal([]byte(body), &sent); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return sent.Messages
}

// A chat continues with the answer, as the user and the assistant in turns; halves of
// a character sent apart are one, and reasoning does not go back.
func TestChatContinues(t *testing.T) {
	t.Parallel()
	rows := turnsOf(5, 20)
	s := &talks{answers: []string{
		countedAnswer(5, 4, choice(`"delta":{"reasoning_content":"hm"}`), choice(`"delta":{"content":" a\ud83d"}`), choice(`"delta":{"content":"\ude00\n"}`), choice(`"delta":{"content":""},"finish_reason":"stop"`)),
		countedAnswer(20, 4, choice(`"delta":{"content":" a"}`), choice(`"delta":{"content":"b"},"finish_reason":"stop"`)),
	}}
	c := client(t, serve(t, s.serve).url, liveWith(t, rows, of(Chat)))
	all, err := converse(c, rows)
	if err != nil {
		t.Fatal(err)
	}
	want := transcript.Generated{Tokens: 3, Dropped: 1} // a third of the pieces are reasoning
	if base := all[1].Base; base.Row != trace.Some(0) || base.Answer != want {
		t.Errorf("the turn continues %+v", base)
	}
	sent := messagesIn(t, s.body(1))
	if len(sent) != 3 || sent[0] != messagesIn(t, s.body(0))[0] || sent[1] != (turnText{"assistant", " a😀\n"}) || len(strings.Fields(sent[2].Content)) != 15-want.Tokens {
		t.Errorf("messages %q", sent)
	}
}

// A turn whose earlier answer cannot be part of its prompt is not sent, and its error
// says why.
func TestAnswersThatCannotBeCarried(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		endpoint, answer, want string
	}{
		"too few ids":  {Completions, countedAnswer(5, 3, choice(`"text":" a","token_ids":[5]`), choice(`"text":" b","token_ids":[6]`)), "2 token ids for an answer of 3 tokens"},
		"too many ids": {Completions, countedAnswer(5, 1, choice(`"text":" a","token_ids":[5,6]`)), "2 token ids for an answer of 1 token"},
		"no ids":       {Completions, countedAnswer(5, 1, choice(`"text":" a"`)), "0 token ids for an answer of 1 token"},
		"a tool":       {Chat, countedAnswer(5, 1, choice(`"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}]}`)), "calls a tool"},
		"no usage":     {Chat, streamed + inChunk("data: "+choice(`"delta":{"content":"a"},"finish_reason":"stop"`)+"\n\n"+theEnd) + lastChunk, "does not report the number of output tokens"},
		"bad text":     {Chat, countedAnswer(5, 1, choice(`"delta":{"content":"\ud8zz"}`)), "not valid JSON"},
	} {
		rows := turnsOf(5, 20)
		s := &talks{answers: []string{tc.answer}}
		c := client(t, serve(t, s.serve).url, liveWith(t, rows, of(tc.endpoint)))
		all, err := converse(c, rows)
		if len(all) != 1 || all[0].Class != replay.OK || err == nil || !strings.Contains(err.Error(), tc.want) || c.live.book.Len() > 0 {
			t.Errorf("%s: outcomes %+v, error %v, %d rows are left", name, all, err, c.live.book.Len())
		}
	}
}

// If an answer has another number of tokens when it is encoded again, the part after
// the next answer makes up for it; what the template adds is counted.
func TestLengthsAreCompensated(t *testing.T) {
	t.Parallel()
	const template, more, drift = 5, 3, 2
	for _, exact := range []bool{false, true} {
		rows := turnsOf(20, 50, 90)
		counted := []int{20, 50 + drift, 90}
		if !exact {
			counted = []int{20 + template, 50 + template + more + drift, 90 + template + 2*more}
		}
		s := &talks{}
		for _, n := range counted {
			s.answers = append(s.answers, countedAnswer(n, 4, choice(`"delta":{"content":" a b c d"}`), choice(`"delta":{"content":""},"finish_reason":"stop"`)))
		}
		c := client(t, serve(t, s.serve).url, liveWith(t, rows, of(Chat)))
		c.cfg.ExactISL, c.template, c.live.more = exact, trace.Some(template), trace.Some(more)
		if _, err := converse(c, rows); err != nil {
			t.Fatal(err)
		}
		sent, words := messagesIn(t, s.body(2)), 0
		for _, m := range sent {
			words += len(strings.Fields(m.Content))
		}
		if want := counted[2] - template - 2*more - drift; words != want || len(sent) != 5 {
			t.Errorf("exact %t: %d words in %d messages, want %d", exact, words, len(sent), want)
		}
		for i, m := range messagesIn(t, s.body(1)) {
			if m != sent[i] {
				t.Errorf("exact %t: message %d was sent as %q and then as %q", exact, i, m, sent[i])
			}
		}
	}
}

// A turn that is refused has the same body when it is sent again. If it fails, nothing
// of the conversation is kept.
func TestRefusedTurnsContinue(t *testing.T) {
	t.Parallel()
	rows := turnsOf(5, 20, 30)
	busy := answerOf("429 Too Many Requests", "text/plain", "busy")
	s := &talks{answers: []string{countedAnswer(5, 1, choice(`"text":" a","token_ids":[7]`)), busy, busy}}
	c := client(t, serve(t, s.serve).url, liveWith(t, rows, func(cfg *Config) { cfg.Retries = 1 }))
	if _, err := converse(c, rows[:2]); err != nil {
		t.Fatal(err)
	}
	again, err := c.PrepareAgain(rows[1], 1)
	if err != nil || c.live.book.Len() != 2 {
		t.Fatalf("%v, %d rows are kept", err, c.live.book.Len())
	}
	o := again.Send(context.Background())
	if s.body(1) != s.body(2) || !strings.Contains(s.body(1), ",7,") || o.Base.Answer.Tokens != 1 {
		t.Errorf("bodies\n%s and\n%s, %+v", s.body(1), s.body(2), o.Base)
	}
	if c.live.book.Len() != 0 || len(c.live.refused) != 0 {
		t.Errorf("%d rows are kept", c.live.book.Len())
	}
}

// A row's own messages keep their roles, and the assistant's message after those of an
// earlier row is what the server answered. Others are sent unchanged.
func TestOwnMessagesContinue(t *testing.T) {
	t.Parallel()
	const first = `{"role":"system","content":"be brief"},{"role":"user","content":"q1"}`
	const second = first + `,{"role":"assistant","content":"recorded 1"},{"role":"tool","content":"t"}`
	turn := func(messages string) trace.Request {
		r := extra(`{"messages":[` + messages + `]}`)
		r.SessionID, r.InputLength = "s", 9
		return r
	}
	rows := []trace.Request{turn(first), turn(second), turn(second + `,{"role":"assistant","content":"recorded 2"},{"role":"user","content":"q2"}`),
		turn(`{"role":"user","content":"another"},{"role":"assistant","content":"recorded 3"},{"role":"user","content":"q3"}`),
		turn(`{"role":"user","content":"another"},{"role":"assistant","content":"recorded 3"},{"role":"user","content":"q3"},{"role":"assistant","tool_calls":[{"id":"x"}]}`)}
	s := &talks{}
	for i := range rows {
		s.answers = append(s.answers, countedAnswer(5, 1, choice(fmt.Sprintf(`"delta":{"content":"real %d"}`, i+1))))
	}
	c := client(t, serve(t, s.serve).url, liveWith(t, rows, of(Chat)))
	all, err := converse(c, rows)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range rows {
		text := ""
		for _, m := range messagesIn(t, s.body(i)) {
			text += m.Role + " " + m.Content + "; "
		}
		got = append(got, fmt.Sprint(text, all[i].Base.Row.Set))
	}
	want := []string{
		"system be brief; user q1; false",
		"system be brief; user q1; assistant real 1; tool t; true",
		"system be brief; user q1; assistant real 1; tool t; assistant real 2; user q2; true",
		"user another; assistant recorded 3; user q3; false",
		"user another; assistant recorded 3; user q3; assistant ; false",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d: %s, want %s", i, got[i], want[i])
		}
	}
	if counts := c.AnswerCounts(); counts != (AnswerCounts{Continued: 2, Unchanged: 2}) {
		t.Errorf("%+v", counts)
	}
}

// Nothing is kept for rows that are not sent.
func TestForgottenAnswers(t *testing.T) {
	t.Parallel()
	rows := turnsOf(5, 20, 40)
	s := &talks{answers: []string{countedAnswer(5, 1, `{"choices":[{"text":"a","token_ids":[7]}]}`)}}
	c := client(t, serve(t, s.serve).url, liveWith(t, rows))
	if _, err := converse(c, rows[:1]); err != nil {
		t.Fatal(err)
	}
	if c.live.book.Kept() == 0 {
		t.Fatal("the answer is not kept")
	}
	c.Forget(1)
	c.Forget(2)
	if c.live.book.Len() != 0 || c.live.book.Kept() != 0 {
		t.Errorf("%d rows, %d bytes", c.live.book.Len(), c.live.book.Kept())
	}
}

// A later turn that does not fit the context that the server lists is outgrown, with
// what its prompt really takes.
func TestOutgrownContext(t *testing.T) {
	t.Parallel()
	list := answerOf("200 OK", "application/json", `{"data":[{"id":"m","max_model_len":100},{"id":"n","max_model_len":"?"}]}`)
	rows := turnsOf(97, 96, 97, 98)
	for _, answers := range AnswerModes() {
		c := client(t, serve(t, endpoint(list, streamed+inChunk(complete)+lastChunk)).url, liveWith(t, rows, of(Chat), func(cfg *Config) { cfg.Answers = answers }))
		if _, err := c.Probe(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i, fits := range []bool{true, true, false, false} { // no turn waits for the first one
			_, err := c.Prepare(rows[i], i)
			if errors.Is(err, replay.ErrOutgrown) == fits || err != nil && !strings.Contains(err.Error(), "and 4 output tokens exceed the context of 100") {
				t.Errorf("%s: row %d: %v", answers, i, err)
			}
		}
	}
}

// The probe fails if answers cannot be part of later prompts, and says what is missing.
func TestProbeOfLiveAnswers(t *testing.T) {
	t.Parallel()
	withIDs := strings.Replace(complete, `"text":" tide"`, `"text":" tide","token_ids":[7]`, 1)
	silent := strings.Replace(complete, tokens, "", 1)
	for name, tc := range map[string]struct {
		cfg    Config
		stream string
		want   string // error
	}{
		"ids":                {Config{Prompt: Tokens}, withIDs, ""},
		"text of ids":        {Config{Prompt: Tokens}, complete, "returns no token ids"},
		"words":              {Config{Prompt: Words}, complete, "prompts are text on the completions endpoint"},
		"chat":               {Config{Endpoint: Chat}, complete, ""},
		"chat without usage": {Config{Endpoint: Chat}, silent, "does not report the number of output tokens"},
	} {
		c := client(t, serve(t, endpoint(listed("m"), streamed+inChunk(tc.stream)+lastChunk)).url, liveWith(t, turnsOf(5, 9), func(cfg *Config) {
			cfg.Endpoint, cfg.Prompt = tc.cfg.Endpoint, tc.cfg.Prompt
		}))
		_, err := c.Probe(context.Background())
		var refused *RefusedError
		if errors.As(err, &refused) != (tc.want != "") || refused != nil && (refused.Remedy != UseOtherAnswers || !strings.Contains(refused.Text, tc.want)) || err != nil && refused == nil {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// A request that takes too long is closed and has what arrived until then.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	brief := func(cfg *Config) { cfg.CancelAfter = 50 * time.Millisecond }
	// Two tokens arrive before it, also on a machine that stands still for 50 ms.
	longer := func(cfg *Config) { cfg.CancelAfter = time.Second }
	gone := make(chan bool, 1)
	holding := serve(t, once(func(p *peer) {
		p.say(streamed+inChunk(tide), inChunk(tide))
		p.hold()
		gone <- true
	})).url
	o := send(t, client(t, holding, longer))
	wantClass(t, o, replay.Abandoned, "abandoned after 1s")
	if len(o.Gaps) != 1 || o.Status != 200 {
		t.Errorf("status %d, %d gaps", o.Status, len(o.Gaps))
	}
	<-gone
	wantClass(t, send(t, client(t, serve(t, once((*peer).hold)).url, brief)), replay.Abandoned, "abandoned")
	wantClass(t, send(t, client(t, serve(t, once((*peer).hold)).url, brief, func(cfg *Config) { cfg.Timeout = time.Millisecond })), replay.Timeout, "")
	wantClass(t, send(t, client(t, serve(t, once((*peer).hold)).url, brief, func(cfg *Config) { cfg.FirstByteTimeout = time.Millisecond })), replay.Timeout, "")
	wantOK(t, send(t, client(t, serve(t, wellBehaved).url, func(cfg *Config) { cfg.CancelAfter = time.Hour })), 2)
}

// The beginning of an answer has the share of its bytes that there is room for, and ends with a
// whole character.
func TestBeginningOfAnswer(t *testing.T) {
	t.Parallel()
	c := client(t, "http://localhost", of(Chat))
	rapid.Check(t, func(t *rapid.T) {
		k := &kept{}
		kinds := []string{" a", `b\"c`, "é", "😀", `\n`, `\/`, `\ud83d|\ude00`, "�", `\ude00`}
		if rapid.Bool().Draw(t, "well formed") {
			kinds = kinds[:7]
		}
		for _, kind := range rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 20).Draw(t, "pieces") {
			for piece := range strings.SplitSeq(kind, "|") {
				k.event = pieces{text: []byte(piece)}
				k.take(&chunkInfo{})
			}
		}
		a, g := c.replyOf(k, replay.Counts{Output: trace.Some(k.textPieces)})
		if a.err != nil {
			t.Fatal(a.err)
		}
		var whole, said string
		room := rapid.IntRange(1, g.Tokens+2).Draw(t, "room")
		text := a.beginning(room)
		if stdjson.Unmarshal([]byte(`"`+string(a.text)+`"`), &whole) != nil || stdjson.Unmarshal([]byte(`"`+string(text)+`"`), &said) != nil {
			t.Fatalf("%q of %q", text, a.text)
		}
		if !strings.HasPrefix(whole, said) || len(text)*g.Tokens > len(a.text)*room || (room >= g.Tokens) != (said == whole) && room >= g.Tokens {
			t.Fatalf("room for %d of %d tokens: %q of %q", room, g.Tokens, said, whole)
		}
	})
}

// keptOf returns the parts kept from a stream of events.
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
