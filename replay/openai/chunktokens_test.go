package openai

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"moontide/replay"
	"moontide/trace"
)

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

// The probe finds out how an endpoint tells the tokens of each chunk, and requests
// ask for no more than one way. An endpoint that knows neither, or refuses to be
// asked, gets plain requests.
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
