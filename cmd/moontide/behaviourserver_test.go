//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// question is a request as a scripted server sees it.
type question struct {
	number int // in order of arrival, from 0; -1 for a probe
	chat   bool
	isl    int // tokens of the prompt
	max    int // max_tokens
	inEach bool
	ids    bool
}

// ending is what a scripted server does with a connection after its answer.
type ending int

const (
	keep   ending = iota
	hangUp        // closes it
	reset         // resets it
	stall         // sends nothing more
	die           // resets it and accepts no more
)

// style is how a scripted server answers. The zero value of a field is what a sound
// server does.
type style struct {
	head   string // instead of the status line and the headers up to the framing
	before string // responses before it
	raw    string // instead of all of the response
	end    ending

	first, per int                                    // tokens of the first chunk and of the others
	tokens     int                                    // of the answer; 0 is max_tokens, below 0 none
	member     string                                 // of a delta: content, reasoning_content, tool_calls
	reasoning  int                                    // tokens of the answer before those of member
	role       bool                                   // an event with the role only comes first
	usage      func(isl, tokens int) string           // at the end; "" is none
	inEach     bool                                   // usage with every chunk, also if not asked for
	ids        bool                                   // token ids with every chunk, also if not asked for
	finish     string                                 // finish reason
	noFinish   bool                                   // no finish reason
	noDone     bool                                   // no [DONE]
	insert     string                                 // event after the first chunk
	last       string                                 // event before [DONE]
	body       func(events []string) (cut []string)   // changes the events
	frame      func(body string) (framed, raw string) // instead of chunks of HTTP
}

func usageOf(isl, tokens int) string { return usageJSON(fmt.Sprint(isl), fmt.Sprint(tokens), "0") }

func usageJSON(isl, tokens, cached string) string {
	return fmt.Sprintf(`{"prompt_tokens":%s,"completion_tokens":%s,"prompt_tokens_details":{"cached_tokens":%s}}`, isl, tokens, cached)
}

// chunk returns the event with tokens of an answer.
func (s *style) chunk(q question, tokens, soFar int) string {
	text := `"` + strings.Repeat(" tide", tokens) + `"`
	if s.member == "tool_calls" {
		text = `[{"index":0,"function":{"arguments":` + text + `}}]`
	}
	choice := `"text":` + text
	if q.chat {
		member := s.member
		if soFar <= s.reasoning {
			member = "reasoning_content"
		}
		choice = fmt.Sprintf(`"delta":{"%s":%s}`, member, text)
	}
	if s.ids {
		choice += `,"token_ids":[` + strings.TrimSuffix(strings.Repeat("7,", tokens), ",") + "]"
	}
	event := `{"choices":[{"index":0,` + choice + `}]`
	if s.inEach {
		event += `,"usage":` + s.usage(q.isl, soFar)
	}
	return event + "}"
}

// events returns the data of all events of an answer.
func (s *style) events(q question) (events []string) {
	if s.role {
		events = append(events, `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`)
	}
	total := s.tokens
	if total == 0 {
		total = q.max
	}
	total = max(total, 0)
	for soFar, next := 0, s.first; soFar < total; next = s.per {
		next = min(next, total-soFar)
		soFar += next
		events = append(events, s.chunk(q, next, soFar))
		if soFar == next && s.insert != "" {
			events = append(events, s.insert)
		}
	}
	if !s.noFinish {
		delta := `"text":""`
		if q.chat {
			delta = `"delta":{}`
		}
		events = append(events, fmt.Sprintf(`{"choices":[{"index":0,%s,"finish_reason":"%s"}]}`, delta, s.finish))
	}
	if usage := s.usage(q.isl, total); usage != "" {
		events = append(events, `{"choices":[],"usage":`+usage+`}`)
	}
	if s.last != "" {
		events = append(events, s.last)
	}
	if !s.noDone {
		events = append(events, "[DONE]")
	}
	if s.body != nil {
		events = s.body(events)
	}
	return events
}

// response returns the bytes of an answer.
func (s *style) response(q question) string {
	if s.raw != "" {
		return s.raw
	}
	body := ""
	for _, event := range s.events(q) {
		body += "data: " + event + "\n\n"
	}
	framed, framing := chunked(body)
	if s.frame != nil {
		framed, framing = s.frame(body)
	}
	head := s.head
	if head == "" {
		head = streamHead
	}
	return s.before + head + framing + "\r\n" + framed
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

// chunked frames a body as chunks of HTTP.
func chunked(body string) (framed, header string) {
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body), "Transfer-Encoding: chunked\r\n"
}

// scripted is a server that behaves as a script says.
type scripted struct {
	*behaviour
	ln       net.Listener
	mu       sync.Mutex
	requests int
	conns    []net.Conn
	all      chan struct{} // closed when every request has arrived
	running  sync.WaitGroup
}

// serveScript serves a behaviour until the test ends.
func serveScript(t *testing.T, b *behaviour) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{behaviour: b, ln: ln, all: make(chan struct{})}
	s.running.Go(s.accept)
	t.Cleanup(func() {
		ln.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return "http://" + ln.Addr().String()
}

func (s *scripted) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.mu.Unlock()
		s.running.Go(func() { s.converse(c) })
	}
}

// converse answers the requests of one connection.
func (s *scripted) converse(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		q, ok := s.read(in)
		if !ok {
			return
		}
		answer := s.answerTo(q)
		if s.together && q.number >= 0 {
			<-s.all
		}
		if answer.end == die {
			s.ln.Close()
		}
		if _, err := io.WriteString(c, answer.response(q)); err != nil {
			return
		}
		switch answer.end {
		case hangUp:
			return
		case stall:
			io.Copy(io.Discard, in) // until the client hangs up
			return
		case reset, die:
			c.(*net.TCPConn).SetLinger(0)
			return
		}
	}
}

// read reads a request.
func (s *scripted) read(in *bufio.Reader) (q question, ok bool) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return q, false
	}
	var asked struct {
		Prompt    []int
		Messages  []struct{ Content string }
		MaxTokens int `json:"max_tokens"`
		Options   struct {
			InEach bool `json:"continuous_usage_stats"`
		} `json:"stream_options"`
		IDs bool `json:"return_token_ids"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return q, false
	}
	q = question{number: -1, max: asked.MaxTokens, isl: len(asked.Prompt), inEach: asked.Options.InEach, ids: asked.IDs}
	for _, m := range asked.Messages {
		q.chat, q.isl = true, q.isl+len(strings.Fields(m.Content))
	}
	if q.max > 1 { // probes ask for one token
		q.number = s.count()
	}
	return q, true
}

// count returns the number of a request.
func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.requests == s.rows {
		close(s.all)
	}
	return s.requests - 1
}

// answerTo returns how to answer a request: as the behaviour's script says, or
// soundly if it is not about this request.
func (s *scripted) answerTo(q question) *style {
	a := &style{first: 1, per: 1, member: "content", finish: "length", usage: usageOf}
	if s.always != nil {
		s.always(a, q)
	}
	if s.script != nil && q.number >= 0 && (s.bad == 0 || q.number < s.bad) {
		s.script(a, q)
	}
	return a
}
