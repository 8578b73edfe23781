package openai

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// OnToken is called for each token chunk of a row, and for nothing else: not for
// probes or warm-up requests.
func TestOnToken(t *testing.T) {
	t.Parallel()
	told := map[int][]string{}
	word := func(text string) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"text":"%s"}]}`, text) + "\n\n"
	}
	c := client(t, serve(t, always(func(p *peer, _ *http.Request, _ string) {
		p.say(streamed, inChunk(word("a")+word("")), inChunk(": ping\n\n"+word("b")), inChunk(finish+tokens+theEnd)+lastChunk)
	})).url, func(cfg *Config) {
		cfg.OnToken = func(row int, data []byte) { told[row] = append(told[row], string(data)) }
	})
	if o, _ := c.probe(context.Background(), c.servers[0], 3); o.Error != "" {
		t.Fatal(o.Error)
	}
	warm, err := c.Warmup().Prepare(row, 7)
	if err != nil {
		t.Fatal(err)
	}
	wantOK(t, warm.Send(context.Background()), 2)
	if len(told) > 0 {
		t.Errorf("called for a probe or a warm-up request: %v", told)
	}
	for _, n := range []int{7, 0} {
		call, err := c.Prepare(row, n)
		if err != nil {
			t.Fatal(err)
		}
		wantOK(t, call.Send(context.Background()), 2)
	}
	want := []string{`{"choices":[{"index":0,"text":"a"}]}`, `{"choices":[{"index":0,"text":"b"}]}`}
	if len(told) != 2 || !slices.Equal(told[7], want) || !slices.Equal(told[0], want) {
		t.Errorf("called with %v", told)
	}
}
