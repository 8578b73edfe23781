package openai

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/replay/openai/http1/http1test"
	"moontide/replay/openai/poll"
	"moontide/trace"
	"moontide/trace/stats"
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

// Counts grow, and come in parts.
func TestUsage(t *testing.T) {
	t.Parallel()
	for want, usages := range map[replay.Counts][]string{
		{Input: trace.Some(7), Output: trace.Some(2)}: {`{"prompt_tokens":7,"completion_tokens":1}`, `{"prompt_tokens":7,"completion_tokens":2}`, `{"completion_tokens":0}`},
		{Input: trace.Some(7), Cached: trace.Some(2)}: {`{"prompt_tokens":7}`, `null`, `{"cached_tokens":2}`},
	} {
		var events []string
		for _, u := range usages {
			events = append(events, `{"choices":[],"usage":`+u+`}`)
		}
		if got := taken(t, events...).counts; got != want {
			t.Errorf("counts %+v, want %+v", got, want)
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

// told is a token chunk with members beside its text and in its choice.
func told(members, inChoice string) string {
	return `data: {` + members + `"choices":[{` + inChoice + `"text":" tide"}]}` + "\n\n"
}

// The tokens of each chunk come from its token ids or from the growth of usage. They
// are left out if they are all 1 or if one of them is unknown.
func TestTokensOfChunks(t *testing.T) {
	t.Parallel()
	usage := func(n string) string { return told(`"usage":{"completion_tokens":`+n+`},`, "") }
	ids := func(list string) string { return told("", `"token_ids":[`+list+`],`) }
	for name, tc := range map[string]struct {
		events string
		want   []int32
		output trace.Opt[int]
	}{
		"usage, 5 and then 1": {usage("5") + usage("6") + usage("7"), []int32{5, 1, 1}, trace.Some(7)},
		"usage, 3 each":       {usage("3") + usage("6") + usage("9"), []int32{3, 3, 3}, trace.Some(9)},
		"usage as a float":    {usage("3.0") + usage("6.0"), []int32{3, 3}, trace.Some(6)},
		"usage, 1 each":       {usage("1") + usage("2"), nil, trace.Some(2)},
		"a chunk without":     {usage("1") + usage("1") + usage("4"), []int32{1, 0, 3}, trace.Some(4)},
		"usage erased":        {usage("2") + usage("0") + usage("4"), []int32{2, 0, 2}, trace.Some(4)},
		"usage of 2^62":       {usage("4611686018427387904") + usage("4611686018427387904"), []int32{maxCount, 0}, trace.Some(maxCount)},
		"usage missing once":  {usage("2") + told("", "") + usage("6"), nil, trace.Some(6)},
		"no usage":            {told("", "") + told("", ""), nil, trace.Opt[int]{}},
		"token ids":           {ids("7, 8,9") + ids("1") + ids("2,3"), []int32{3, 1, 2}, trace.Opt[int]{}},
		"token ids, 1 each":   {ids("7") + ids("8"), nil, trace.Opt[int]{}},
		"token ids and usage": {told(`"usage":{"completion_tokens":2},`, `"token_ids":[4,5],`) + told(`"usage":{"completion_tokens":3},`, `"token_ids":[6],`), []int32{2, 1}, trace.Some(3)},
	} {
		o := send(t, client(t, serve(t, says(streamed+inChunk(tc.events+theEnd)+lastChunk)).url))
		wantOK(t, o, strings.Count(tc.events, "data:"))
		if !slices.Equal(o.ChunkTokens, tc.want) || o.Counts.Output != tc.output {
			t.Errorf("%s: %v, %v output tokens, want %v and %v", name, o.ChunkTokens, o.Counts.Output, tc.want, tc.output)
		}
	}
}

func TestChunkTokensAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.Int32Range(0, 300)).Draw(t, "tokens")
		var c chunkTokens
		for _, k := range want {
			c.add(int(k))
		}
		got := c.list()
		if got == nil {
			got = slices.Repeat([]int32{1}, len(want))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// The probe detects how an endpoint reports the tokens of each chunk; requests then ask
// for that way only. An endpoint that supports neither, or refuses both, gets plain
// requests.
func TestProbeForChunkTokens(t *testing.T) {
	t.Parallel()
	const continuous, ids = "continuous_usage_stats", "return_token_ids"
	whole := func(event string) string {
		return streamed + inChunk(event+finish+`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`+"\n\n"+theEnd) + lastChunk
	}
	for name, tc := range map[string]struct {
		event   string
		refuses string // in the body
		error   string
		asks    string // the member that requests have
	}{
		"usage":               {told(`"usage":{"prompt_tokens":3,"completion_tokens":1},`, ""), "", "", continuous},
		"token ids":           {told("", `"token_ids":[7],`), "", "", ids},
		"both":                {told(`"usage":{"prompt_tokens":3,"completion_tokens":1},`, `"token_ids":[7],`), "", "", continuous},
		"neither":             {told("", ""), "", "", ""},
		"refuses continuous":  {told("", ""), continuous, "unknown parameter: stream_options." + continuous, ""},
		"refuses token ids":   {told("", ""), ids, "extra fields not permitted: " + ids, ""},
		"refuses, not saying": {told("", ""), continuous, "bad request", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client(t, serve(t, listing(listed("a"), func(p *peer, r *http.Request, body string) {
				switch {
				case tc.refuses != "" && strings.Contains(body, tc.refuses):
					p.say(answerOf("400 Bad Request", "application/json", `{"error":{"message":"`+tc.error+`"}}`))
				default:
					p.say(whole(tc.event))
				}
			})).url)
			if _, err := c.Probe(context.Background()); err != nil {
				t.Fatal(err)
			}
			body := string(prepare(t, c, row).body)
			for _, member := range []string{continuous, ids} {
				if strings.Contains(body, member) != (member == tc.asks) {
					t.Errorf("want %q in %s", tc.asks, body)
				}
			}
			if !c.IgnoresEOS() || !c.MinTokens() || !strings.Contains(body, `"stream_options":{"include_usage":true`) {
				t.Errorf("body %s", body)
			}
		})
	}
}

func TestDialClass(t *testing.T) {
	for err, want := range map[error]replay.Class{
		syscall.EMFILE: replay.ClientFault, syscall.ENFILE: replay.ClientFault, syscall.EADDRNOTAVAIL: replay.ClientFault, syscall.ENOBUFS: replay.ClientFault,
		syscall.ECONNREFUSED: replay.Connect, syscall.ECONNRESET: replay.Connect, syscall.EHOSTUNREACH: replay.Connect,
		&net.DNSError{Err: "no such host"}: replay.ClientFault,
	} {
		if got := dialClass(&net.OpError{Op: "dial", Net: "tcp", Err: err}); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// An answer far longer than max_tokens ends: the times of its chunks take memory.
func TestEndlessTokensEnd(t *testing.T) {
	t.Parallel()
	most := maxChunks(row.OutputLength)
	for extra, want := range map[int]replay.Class{0: replay.OK, 2: replay.Protocol} {
		o := send(t, client(t, serve(t, says(streamed+inChunk(strings.Repeat(tide, most+extra)+theEnd)+lastChunk)).url))
		if o.Class != want || len(o.Gaps) > most || want != replay.OK && !strings.Contains(o.Error, "token chunks, far above max_tokens") {
			t.Errorf("%d chunks: %q %q, %d gaps", most+extra, o.Class, o.Error, len(o.Gaps))
		}
	}
}

// An outcome tells the first visible token only if it arrived after reasoning, and
// an answer of reasoning alone from one without.
func TestReasoningOutcome(t *testing.T) {
	t.Parallel()
	const (
		hm   = `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}` + "\n\n"
		says = `data: {"choices":[{"index":0,"delta":{"content":" tide"}}]}` + "\n\n"
		both = `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm","content":" tide"}}]}` + "\n\n"
		call = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]}}]}` + "\n\n"
	)
	for name, test := range map[string]struct {
		pieces  []string      // read a second apart
		visible time.Duration // after the first token
		only    bool
	}{
		"no reasoning":               {[]string{role, says, says}, 0, false},
		"reasoning first":            {[]string{role, hm, hm, says, says}, 2 * time.Second, false},
		"reasoning again":            {[]string{hm, says, hm, says}, time.Second, false},
		"reasoning, then a tool":     {[]string{hm, call}, time.Second, false},
		"reasoning alone":            {[]string{hm, hm, finish}, 0, true},
		"reasoning after text":       {[]string{says, hm}, 0, false},
		"both in one chunk":          {[]string{both, says}, 0, false},
		"both in one read":           {[]string{hm + says, says}, 0, false},
		"a finish reason in the end": {[]string{hm, hm, says, finish}, 2 * time.Second, false},
		"responses":                  {[]string{responsesReasoning, responsesReasoning, responsesToken}, 2 * time.Second, false},
		"messages":                   {[]string{messagesReasoning, messagesToken, messagesToken}, time.Second, false},
	} {
		pieces := [][]byte{[]byte(streamed)}
		for _, piece := range test.pieces {
			pieces = append(pieces, []byte(inChunk(piece)))
		}
		a := fed(pieces, io.EOF)
		visible, only := time.Duration(0), a.stream.visible.IsZero()
		if !only {
			visible = a.stream.visible.Sub(a.stream.first)
		}
		if visible != test.visible || only != test.only {
			t.Errorf("%s: visible after %v, reasoning only: %v", name, visible, only)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const none = time.Duration(-1)
	for value, want := range map[string]time.Duration{
		"": none, "0": 0, "7": 7 * time.Second, " 120 ": 2 * time.Minute, "-5": none, "1.5": none, "soon": none,
		"99999999999999999999":          none,
		"4294967295":                    4294967295 * time.Second,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:30 GMT": 0,
		"Sunday":                        none,
	} {
		if got := retryAfter(value, now); got.Set != (want != none) || got.Set && got.Value != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestRetryAfterOfRefusalsOnly(t *testing.T) {
	for status, want := range map[string]string{"429 Too Many Requests": "7", "503 Service Unavailable": "7", "200 OK": "", "500 Oops": ""} {
		a := fed([][]byte{[]byte("HTTP/1.1 " + status + "\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n")}, io.EOF)
		if a.retryAfter != want {
			t.Errorf("%s: %q, want %q", status, a.retryAfter, want)
		}
	}
}

// Token chunks that were read together with a later event may be late by as much
// as they can have waited.
func TestSharedStamps(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms, unread int) poll.Arrival {
		return poll.Arrival{Time: start.Add(time.Duration(ms) * time.Millisecond), Kernel: true, Unread: time.Duration(unread) * time.Millisecond}
	}
	for _, test := range []struct {
		name       string
		reads      [][3]int // ms, unread ms, chunks; 0 chunks: the end, twice
		first, max int      // ms
		merged     uint64
	}{
		{"each by itself", [][3]int{{10, 5, 1}, {20, 5, 1}}, 0, 0, 0},
		{"the first two together", [][3]int{{10, 5, 2}, {20, 5, 1}}, 5, 5, 1},
		{"the first three together", [][3]int{{10, 5, 3}}, 5, 5, 2},
		{"the second and third together", [][3]int{{10, 5, 1}, {20, 7, 2}}, 0, 7, 1},
		{"no earlier than what was read before", [][3]int{{10, 5, 1}, {12, 7, 2}}, 0, 2, 1},
		{"both", [][3]int{{10, 3, 2}, {20, 7, 2}, {30, 1, 2}}, 3, 7, 3},
		{"from a reader that was in time", [][3]int{{10, 0, 4}}, 0, 0, 3},
		{"the end by itself", [][3]int{{10, 5, 1}, {20, 7, 1}, {21, 9, 0}}, 0, 0, 0},
		{"the last with the end", [][3]int{{10, 5, 1}, {20, 7, 1}, {20, 7, 0}}, 0, 7, 1},
		{"the last, which is the first, with the end", [][3]int{{10, 5, 1}, {10, 5, 0}}, 5, 5, 1},
		{"the last two with the end", [][3]int{{10, 5, 1}, {20, 7, 2}, {20, 7, 0}}, 0, 7, 2},
	} {
		shared := stats.NewDurations(3)
		s := stream{shared: shared}
		for _, read := range test.reads {
			for range read[2] {
				s.tokenChunk(at(read[0], read[1]))
			}
			if read[2] == 0 {
				s.otherEvent(at(read[0], read[1]))
				s.otherEvent(at(read[0], read[1]))
			}
		}
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		if s.firstStampError != ms(test.first) || s.maxStampError != ms(test.max) || shared.Count() != test.merged {
			t.Errorf("%s: first %v, max %v, shared %d", test.name, s.firstStampError, s.maxStampError, shared.Count())
		}
	}
}

func TestStampErrorsQuantile(t *testing.T) {
	t.Parallel()
	late := stats.NewDurations(3)
	late.Add(4*time.Millisecond, 5)
	late.Add(8*time.Millisecond, 5)
	for _, test := range []struct {
		chunks uint64
		q      float64
		want   time.Duration // or up to an eighth more
	}{
		{1000, 0.99, 0}, {1001, 0.99, 0}, {999, 0.99, 4 * time.Millisecond}, {500, 0.99, 4 * time.Millisecond},
		{499, 0.99, 8 * time.Millisecond}, {1000, 1, 8 * time.Millisecond}, {10, 0.5, 4 * time.Millisecond}, {0, 0.5, 4 * time.Millisecond},
	} {
		if got := (StampErrors{test.chunks, late}).Quantile(test.q); got < test.want || got > test.want*9/8 {
			t.Errorf("%v of %d chunks is %v, want %v", test.q, test.chunks, got, test.want)
		}
	}
	if got := (StampErrors{Chunks: 5, Shared: new(stats.Durations)}).Quantile(1); got != 0 {
		t.Errorf("of none merged %v", got)
	}
	m := StampErrors{20, late}.Since(StampErrors{8, new(stats.Durations)})
	if m.Chunks != 12 || m.Shared.Count() != 10 {
		t.Errorf("%d chunks, %d merged", m.Chunks, m.Shared.Count())
	}
}

// scripted is a client whose connection is s.
func scripted(t *testing.T, s *http1test.Script, edits ...func(*Config)) *Client {
	c := readers[replay.ClientStamps](client(t, "http://localhost", edits...))
	c.servers[0].host.DialContext = func(context.Context, string, string) (net.Conn, error) { return s, nil }
	return c
}

// A request that is canceled when its answer is complete has succeeded, but the
// deadline that cancels it may still be set: its connection is not reused. Otherwise
// it is, without a deadline.
func TestCanceledTooLate(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := &http1test.Script{Pieces: []string{streamed + inChunk(tide+theEnd), lastChunk}}
		s.OnRead = func(piece int) {
			if late && piece == 1 {
				cancel()
			}
		}
		c := scripted(t, s)
		wantOK(t, prepare(t, c, row).Send(ctx), 1)
		if idle := c.servers[0].host.Idle(); (idle == nil) != late {
			t.Errorf("canceled late: %v, idle connection %v", late, idle)
		}
		if !late && !s.Deadline().IsZero() {
			t.Errorf("idle connection with the deadline %v", s.Deadline())
		}
	}
}
