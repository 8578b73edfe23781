package openai

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"moontide/trace"
)

// Rows are distributed by their numbers, or all turns of a session go to the same
// server.
func TestBalance(t *testing.T) {
	t.Parallel()
	urls := []string{"http://a", "http://b/x/v1", "http://c:1"}
	for _, balance := range []string{RoundRobin, BySession} {
		c := client(t, "", func(cfg *Config) { cfg.URLs, cfg.Balance = urls, balance })
		if got := c.Target(); got != "http://a/v1/completions http://b/x/v1/completions http://c:1/v1/completions" {
			t.Error(got)
		}
		taken := map[string]int{}
		for i := range 300 {
			if got, want := c.server(trace.Request{}, i), c.servers[i%3]; got != want {
				t.Errorf("%s: row %d goes to %s", balance, i, got.base)
			}
			turn := trace.Request{SessionID: fmt.Sprint("s", i)}
			one, two := c.server(turn, i), c.server(turn, i+1)
			if same := one == two; same != (balance == BySession) {
				t.Errorf("%s: two turns go to %s and %s", balance, one.base, two.base)
			}
			taken[one.base.host]++
		}
		for host, n := range taken {
			if n < 70 {
				t.Errorf("%s: %s has %d of 300 sessions", balance, host, n)
			}
		}
	}
}

// Each server is probed and gets its share of the requests.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	got := make(chan string, 20)
	server := func(name string) string {
		return serve(t, listing(listed("a"), func(p *peer, r *http.Request, body string) {
			got <- name + r.Host + body
			usual(p, r, body)
		})).url
	}
	urls := []string{server("one"), server("two")}
	c := client(t, "", func(cfg *Config) { cfg.URLs, cfg.Model = urls, "" })
	if _, err := c.Probe(context.Background()); err != nil || c.Model() != "a" {
		t.Fatalf("model %q, %v", c.Model(), err)
	}
	for i := range 2 {
		made, err := c.Prepare(row, i)
		if err != nil {
			t.Fatal(err)
		}
		wantOK(t, made.Send(context.Background()), 2)
	}
	for i := range 6 { // two probes each, and two requests
		i = []int{0, 0, 1, 1, 0, 1}[i]
		want := []string{"one", "two"}[i] + strings.TrimPrefix(urls[i], "http://")
		if said := <-got; !strings.HasPrefix(said, want) {
			t.Errorf("request %d is %s, want %s", i, said, want)
		}
	}

	c = client(t, "", func(cfg *Config) { cfg.URLs = append(slices.Clone(urls), serve(t, says()).url) })
	if _, err := c.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), c.servers[2].base.host) {
		t.Errorf("a server that hangs up: %v", err)
	}
}
