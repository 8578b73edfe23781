package openai

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"moontide/trace"
)

// The turns of a session carry its name, in a form that every server accepts.
func TestSessionHeader(t *testing.T) {
	t.Parallel()
	got := make(chan []string, 1)
	script := always(func(p *peer, r *http.Request, _ string) {
		got <- r.Header.Values("X-Session-ID")
		p.say(streamed + inChunk(complete) + lastChunk)
	})
	c := client(t, serve(t, script).url)
	sent := func(c *Client, session string) string {
		r := row
		r.SessionID = session
		wantOK(t, prepare(t, c, r).Send(context.Background()), 2)
		return strings.Join(<-got, "|")
	}
	for session, want := range map[string]string{
		"":                       "",
		"chat-7":                 "chat-7",
		strings.Repeat("s", 128): strings.Repeat("s", 128),
	} {
		if name := sent(c, session); name != want {
			t.Errorf("session %q is named %q", session, name)
		}
	}
	seen := map[string]string{}
	for _, session := range []string{"a\r\nX-Evil: 1", "a\nb", "a b", "é", "\x7f", strings.Repeat("s", 129), strings.Repeat("s", 1<<20)} {
		name := sent(c, session)
		if len(name) < 2 || len(name) > 17 || name[0] != 'x' || seen[name] != "" || sent(c, session) != name {
			t.Errorf("session %.20q is named %q, like %.20q", session, name, seen[name])
		}
		seen[name] = session
	}
	// The user's own header takes precedence.
	c = client(t, c.servers[0].base.String(), func(cfg *Config) { cfg.Headers = []Header{{"x-session-id", "mine"}} })
	if name := sent(c, "chat-7"); name != "mine" {
		t.Errorf("named %q", name)
	}
	// Another header, or none, is the user's choice.
	for header, want := range map[string]string{"X-Affinity": "chat-7", NoSessionHeader: ""} {
		c = client(t, c.servers[0].base.String(), func(cfg *Config) { cfg.SessionHeader = header })
		head := string(prepare(t, c, trace.Request{InputLength: 3, SessionID: "chat-7"}).head)
		if has := strings.Contains(head, "X-Affinity: chat-7\r\n"); has != (want != "") || strings.Contains(head, "X-Session-I") || strings.Contains(head, "None") {
			t.Errorf("session header %s: %s", header, head)
		}
	}
}
