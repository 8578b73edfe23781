package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/sim/engine"
	"moontide/trace/tracetest"
)

const (
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
	generatePath  = "/generate"
)

// A stream says the same as a whole answer, in every API, whatever part of it is
// reasoning.
func TestStreamAndWholeAgree(t *testing.T) {
	t.Parallel()
	const tokens = 12
	for _, reasoning := range []int{0, 1, 5, tokens, 100} {
		s := start(t, Config{ReasoningTokens: reasoning})
		for _, d := range dialects {
			plain, _ := d.ask(s, d.request(tokens, `,"ignore_eos":true`))
			all := strings.Fields(plain.Reasoning + plain.Text)
			wantReasoning := 0
			if d.separates {
				wantReasoning = min(reasoning, tokens)
			}
			if got := len(strings.Fields(plain.Reasoning)); len(all) != tokens || got != wantReasoning {
				t.Errorf("%s: %d words, %d of them reasoning; want %d, %d", d.path, len(all), got, tokens, wantReasoning)
			}
			natural, _ := d.ask(s, strings.Replace(d.request(1000, ""), `"ignore_eos":true,`, "", 1))
			if plain.Finish != d.length || plain.Output != tokens || natural.Finish != d.stop || natural.Output < 16 || natural.Output > 512 {
				t.Errorf("%s: %+v, want %s; %+v, want %s", d.path, plain, d.length, natural, d.stop)
			}
			streaming := strings.TrimSuffix(d.request(tokens, `,"ignore_eos":true`), "}") + `,"stream":true}`
			if d.path == chatPath || d.path == completionPath {
				streaming = strings.TrimSuffix(streaming, "}") + `,"stream_options":{"include_usage":true}}`
			}
			streamed, _ := d.ask(s, streaming)
			if diff := cmp.Diff(plain, streamed); diff != "" {
				t.Errorf("%s, %d tokens of reasoning (-whole +streamed):\n%s", d.path, reasoning, diff)
			}
		}
	}
}

// The same conversation is the same prompt in every API: the same tokens, answer
// and cached tokens, by words or with a tokenizer.
func TestOneConversationInEveryAPI(t *testing.T) {
	t.Parallel()
	letters := func(dst []uint32, text string) ([]uint32, error) {
		if text == "endless" {
			return dst, errors.New("too slow a pattern")
		}
		for _, r := range strings.ReplaceAll(text, " ", "") {
			dst = append(dst, uint32(r))
		}
		return dst, nil
	}
	for _, tt := range []struct {
		encode Encoder
		tokens int
	}{{nil, 5}, {letters, len("bebriefhowareyou")}} {
		cfg := over(engine.Config{BlockSize: 1})
		cfg.Encode = tt.encode
		s := start(t, cfg)
		var first said
		for i, d := range dialects {
			got, _ := d.ask(s, d.request(7, `,"ignore_eos":true`))
			if want := min(i, 1) * (tt.tokens - 1); got.Input != tt.tokens || got.Cached != want || got.Output != 7 {
				t.Errorf("%s: %+v; want %d tokens, %d cached, 7 of output", d.path, got, tt.tokens, want)
			}
			if i == 0 {
				first = got
			}
			if got.Text != first.Text {
				t.Errorf("%s: %q; want %q", d.path, got.Text, first.Text)
			}
		}
		if status, body := s.do("POST", completionPath, `{"prompt":"endless"}`); tt.encode != nil && (status != 400 || !strings.Contains(body, "too slow a pattern")) {
			t.Errorf("a prompt that is not encoded: status %d: %s", status, body)
		}
	}
}

var streamEnd = regexp.MustCompile(`\[DONE\]|event: (message_stop|response\.(completed|incomplete))`)

// A fault within a stream leaves whole events before it, in every API, and an error
// has the API's shape.
func TestFaultsInEveryAPI(t *testing.T) {
	t.Parallel()
	s := startTCP(t, slowly)
	for _, d := range dialects {
		with := func(fault string) (text, end string) {
			c := s.dial(post(d.path, d.request(40, `,"stream":true,"ignore_eos":true`), "X-Moontide-Fault: "+fault))
			c.header()
			if fault == "error" {
				return c.body(), "ended"
			}
			return c.rest()
		}
		for fault, want := range map[string]string{"reset": "reset", "truncate": "closed"} {
			if text, end := with(fault); end != want || !strings.HasSuffix(text, "\n\n\r\n") || streamEnd.MatchString(text) {
				t.Errorf("%s, %s: %s after %q", d.path, fault, end, text)
			}
		}
		text, _ := with("error")
		var got said
		for _, e := range eventsOf(t, text) {
			if e.data != "[DONE]" {
				got.read(t, e.name, []byte(e.data))
			}
		}
		if got.Error != "The server had an error while processing your request." || got.Finish != "" || got.Text == "" {
			t.Errorf("%s: %+v in\n%s", d.path, got, text)
		}
		if status, body := s.do("POST", d.path, d.request(3, "")); status != 200 {
			t.Errorf("%s after the faults: %d %s", d.path, status, body)
		}
	}
}

func TestErrorsOfEveryAPI(t *testing.T) {
	t.Parallel()
	// The context ends before the KV cache, or after it: the last token is not in it.
	for fits, cfg := range map[int]engine.Config{15: {MaxModelLen: 20}, 16: {KVBlocks: 5, BlockSize: 4}} {
		s := start(t, over(cfg))
		for _, d := range dialects {
			status, body := s.do("POST", d.path, d.request(fits+1, ""))
			if status != 400 || !strings.Contains(body, "maximum context length is 20 tokens") {
				t.Errorf("%s: %d %s", d.path, status, body)
			}
			if status, body := s.do("POST", d.path, d.request(fits, "")); status != 200 {
				t.Errorf("%s, what fits exactly: %d %s", d.path, status, body)
			}
			for fault, want := range map[string]string{"429": d.limited, "500": d.failed} {
				_, got := s.do("POST", d.path, d.request(3, ""), "X-Moontide-Fault", fault)
				if !strings.Contains(got, `"message":"`) || (want != "") != strings.Contains(got, `"type":"`+want+`"`) {
					t.Errorf("%s, %s: %s", d.path, fault, got)
				}
			}
		}
	}
}

var (
	changing      = regexp.MustCompile(`[0-9a-f]{32}|"created(_at)?":[0-9]{10}\b`)
	generatedText = regexp.MustCompile(`"(?: [a-z]+)+"`)
	generatedIDs  = regexp.MustCompile(`_ids":\[([0-9,]+)\]`)
)

// constant replaces the parts of an answer that differ between runs: ids by X and
// instants by 0.
func constant(text string) string {
	return changing.ReplaceAllStringFunc(text, func(m string) string {
		if instant, _, ok := strings.Cut(m, ":"); ok {
			return instant + ":0"
		}
		return "X"
	})
}

// stream returns an answer without the parts that differ between runs, in which
// generated texts are their number of words and generated token ids their number.
func (s *testServer) stream(method, path, body string) string {
	s.t.Helper()
	status, text := s.do(method, path, body)
	if status != 200 {
		s.t.Fatalf("%s: status %d: %s", path, status, text)
	}
	text = generatedText.ReplaceAllStringFunc(constant(text), func(m string) string { return fmt.Sprintf(`"%d"`, strings.Count(m, " ")) })
	return generatedIDs.ReplaceAllStringFunc(text, func(m string) string {
		return fmt.Sprintf(`_ids":[%d]`, strings.Count(m, ",")+1)
	})
}

// Every API answers with the bytes of the real one, streamed and whole, with and without
// reasoning.
func TestBytesOfAnswers(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, reasoning := range []int{0, 2} {
		s := start(t, Config{Model: `a "model"`, ReasoningTokens: reasoning})
		for _, d := range dialects {
			ways := []string{"", `,"stream":true`}
			if d.path == chatPath || d.path == completionPath {
				ways = append(ways, ways[1]+`,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"return_token_ids":true`,
					ways[1]+`,"stream_options":{"include_usage":true}`, ways[1]+`,"stream_options":{"continuous_usage_stats":true}`)
			}
			for _, members := range ways {
				body := d.request(3, members)
				fmt.Fprintf(&got, "POST %s %s\n\n%s\n\n", d.path, body, s.stream("POST", d.path, body))
			}
		}
	}
	s := start(t, Config{Model: `org/"m"`, Version: "v1"})
	for _, path := range []string{"/version", "/health", "/v1/models"} {
		fmt.Fprintf(&got, "GET %s\n\n%s\n\n", path, s.stream("GET", path, ""))
	}
	tracetest.Golden(t, "testdata/answers.txt", got.String())
	res := s.open("POST", chatPath, `{"stream":true,"max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`)
	if kind, cache := res.Header.Get("Content-Type"), res.Header.Get("Cache-Control"); kind != "text/event-stream; charset=utf-8" || cache != "no-cache" {
		t.Errorf("content type %q, cache control %q", kind, cache)
	}
}

// dialect is how the tests speak an API.
type dialect struct {
	path string
	// body is a request with the members that limit the answer: %d is the number
	// of tokens, %s are further members.
	body string
	// separates is set if the API separates reasoning from visible text.
	separates bool
	// Why a response ends, and the types of the errors 429 and 500.
	length, stop, limited, failed string
}

// said holds the content that a client reads from an answer.
type said struct {
	Reasoning, Text       string
	Input, Cached, Output int
	Finish                string // why it ended, in the words of the API
	Error                 string
}

var dialects = []dialect{
	{chatPath, `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"how are you"}],"max_tokens":%d%s}`, true, "length", "stop", "rate_limit_error", "server_error"},
	{completionPath, `{"prompt":"be brief how are you","max_tokens":%d%s}`, false, "length", "stop", "rate_limit_error", "server_error"},
	{responsesPath, `{"instructions":"be brief","input":"how are you","max_output_tokens":%d%s}`, true, "incomplete", "completed", "rate_limit_error", "server_error"},
	{messagesPath, `{"system":"be brief","messages":[{"role":"user","content":"how are you"}],"max_tokens":%d%s}`, true, "max_tokens", "end_turn", "rate_limit_error", "api_error"},
	{generatePath, `{"text":"be brief how are you","sampling_params":{"ignore_eos":true,"max_new_tokens":%d}%s}`, false, "length", "stop", "", ""},
}

func (d dialect) request(tokens int, members string) string {
	return fmt.Sprintf(d.body, tokens, members)
}

// ask sends a request and reads the answer, streamed or not. It returns the events.
func (d dialect) ask(s *testServer, body string) (got said, stream string) {
	s.t.Helper()
	status, text := s.do("POST", d.path+"?api-version=2024-10-21&beta=true", body) // real servers ignore a query
	if status != 200 {
		s.t.Fatalf("%s %s: status %d: %s", d.path, body, status, text)
	}
	if strings.HasPrefix(text, "{") {
		got.read(s.t, "", []byte(text))
		return got, ""
	}
	for _, e := range eventsOf(s.t, text) {
		if e.data != "[DONE]" {
			got.read(s.t, e.name, []byte(e.data))
		}
	}
	return got, text
}

type event struct{ name, data string }

// eventsOf splits a stream into events, each a name, perhaps, and one line of data.
func eventsOf(t *testing.T, stream string) (events []event) {
	t.Helper()
	whole, ok := strings.CutSuffix(stream, "\n\n")
	if !ok {
		t.Fatalf("the stream ends within an event: %q", stream)
	}
	for text := range strings.SplitSeq(whole, "\n\n") {
		m := regexp.MustCompile(`^(?:event: ([a-z_.]+)\n)?data: (.*)$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("not an event: %q", text)
		}
		events = append(events, event{m[1], m[2]})
	}
	return events
}

// read takes a whole answer, or an event of one, of any API.
func (s *said) read(t *testing.T, name string, data []byte) {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if name != "" && v["type"] != name {
		t.Errorf("event %q has the type %q", name, v["type"])
	}
	if _, ok := v["output_ids"]; ok { // with the text so far
		s.Text = ""
	}
	switch path := strings.Split(name, "."); path[len(path)-1] {
	case "created", "in_progress", "added", "done", "message_start": // nothing new
	case "completed", "incomplete":
		delete(v["response"].(map[string]any), "output")
		fallthrough
	default:
		s.walk("", v)
	}
}

// walk reads the members with content.
func (s *said) walk(key string, v any) {
	list, _ := v.([]any)
	for _, element := range list {
		s.walk(key, element)
	}
	object, _ := v.(map[string]any)
	number := func(key string) int {
		n, _ := object[key].(float64)
		return int(n)
	}
	kind, _ := object["type"].(string)
	if key == "finish_reason" && kind != "" {
		s.Finish = kind
	}
	for k, value := range object {
		text, _ := value.(string)
		switch k {
		case "thinking", "reasoning_content":
			s.Reasoning += text
		case "text", "content", "delta":
			if strings.Contains(kind, "reasoning_text") {
				s.Reasoning += text
			} else {
				s.Text += text
			}
		case "status":
			if object["object"] == "response" {
				s.Finish = text
			}
		case "finish_reason", "stop_reason":
			s.Finish += text
		case "message":
			s.Error += text
		case "prompt_tokens", "input_tokens":
			s.Input = number(k) + number("cache_creation_input_tokens") + number("cache_read_input_tokens")
		case "completion_tokens", "output_tokens":
			s.Output = number(k)
		case "cached_tokens", "cache_read_input_tokens":
			s.Cached = number(k)
		}
		s.walk(k, value)
	}
}

// ways are the ways in which a later prompt can have an earlier answer: what is taken from
// the answer, and the prompt with it.
var ways = []struct {
	name, path, first string
	keeps             bool // the reasoning
	taken, next       string
}{
	{"text", completionPath, `"prompt":"X two three four five"`, true, `"text":"([^"]*)"`, `"prompt":"X two three four five%s and so on"`},
	{"token ids", completionPath, `"prompt":[1,2,3,4,5],"return_token_ids":true`, true, `"token_ids":\[([0-9,]*)\]`, `"prompt":[1,2,3,4,5,%s,6,7,8]`},
	{"output ids", generatePath, `"input_ids":[1,2,3,4,5]`, true, `"output_ids":\[([0-9,]*)\]`, `"input_ids":[1,2,3,4,5,%s,6,7,8]`},
	{"messages", chatPath, `"messages":[{"role":"user","content":"X two three four five"}]`, false, `"message":({.*?}),"logprobs"`,
		`"messages":[{"role":"user","content":"X two three four five"},%s,{"role":"tool","content":"and so on"}]`},
}

// The next turn finds all of an answer that is cached, except for its last token,
// in whatever form it has it; an answer without its reasoning is not in the cache.
func TestAnswersInLaterPrompts(t *testing.T) {
	t.Parallel()
	const size, prompt, added = 3, 5, 3
	tokenizer := func(dst []uint32, text string) ([]uint32, error) {
		for word := range strings.FieldsSeq(text) {
			if rest, ok := strings.CutPrefix(word, "a"); ok { // two tokens
				dst, word = append(dst, 1), rest
			}
			h := fnv.New32a()
			h.Write([]byte(word))
			dst = append(dst, 100+h.Sum32()%1_000_000)
		}
		return dst, nil
	}
	for _, tt := range []struct {
		encode    Encoder
		generated bool // tokens are cached
		reasoning int
	}{
		{nil, false, 0}, {nil, true, 0}, {nil, true, 4}, {nil, true, 32}, {nil, true, 64},
		{tokenizer, true, 0}, {tokenizer, true, 4}, {tokenizer, true, 32}, {tokenizer, true, 64},
	} {
		cfg := over(engine.Config{BlockSize: size})
		cfg.CacheGenerated, cfg.ReasoningTokens, cfg.Encode = tt.generated, tt.reasoning, tt.encode
		s, asked := start(t, cfg), 1000
		for _, way := range ways {
			for _, n := range []int{1, 2, 3, 5, 6, 7, 30, 66, 70} {
				asked++ // another conversation
				other := strings.NewReplacer("X", fmt.Sprint("x", asked), "[1,", fmt.Sprintf("[%d,", asked))
				ask := func(members string, n int) string {
					body := fmt.Sprintf(`{"model":"sim",%s,"ignore_eos":true,"max_tokens":%d,"sampling_params":{"max_new_tokens":%[2]d}}`, members, n)
					status, answer := s.do("POST", way.path, other.Replace(body))
					if status != 200 {
						t.Fatalf("%s: status %d: %s", way.name, status, answer)
					}
					return answer
				}
				answer := ask(way.first, n)
				added := added
				if tt.encode != nil && !strings.Contains(way.name, "ids") {
					added++ // and
				}
				dropped := 0
				if !way.keeps {
					dropped = min(tt.reasoning, n)
				}
				shared := prompt + n - 1
				if dropped > 0 || !tt.generated {
					shared = prompt
				}
				var got said
				next := ask(fmt.Sprintf(way.next, regexp.MustCompile(way.taken).FindStringSubmatch(answer)[1]), 1)
				got.read(t, "", []byte(next))
				if want := prompt + n - dropped + added; got.Input != want || got.Cached != shared/size*size {
					t.Errorf("%s, tokenizer %v, %d of %d tokens are reasoning: %d of %d tokens cached; want %d of %d",
						way.name, tt.encode != nil, min(tt.reasoning, n), n, got.Cached, got.Input, shared/size*size, want)
				}
			}
		}
	}
}
