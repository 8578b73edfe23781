package openai

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"

	"moontide/replay"
	"moontide/replay/openai/http1"
)

const (
	maxEchoes    = 16
	maxEchoBytes = 64 << 20 // of the values and sessions kept
)

// Echo is a header or cookie that a router gives with the answers of a session and
// wants to see again with its later turns.
type Echo struct {
	Name   string
	Cookie bool
	As     string // name of the header in requests; "" means Name
}

// sentAs returns the name in requests.
func (e Echo) sentAs() string { return cmp.Or(e.As, e.Name) }

func (e Echo) String() string {
	if e.Cookie {
		return "cookie " + e.Name
	}
	return "header " + e.Name
}

// same reports whether two are of one name. Names of cookies are case-sensitive.
func (e Echo) same(other Echo) bool {
	return e.Cookie == other.Cookie && (e.Name == other.Name || !e.Cookie && strings.EqualFold(e.sentAs(), other.sentAs()))
}

// EchoCount counts the answered turns of sessions.
type EchoCount struct {
	Echo
	With    int // later turns sent with a value
	Without int // later turns sent without
	// Missing counts first answers without a value, and Dropped those whose value
	// was not kept because there were too many sessions.
	Missing, Dropped int
}

// echoes keeps the values of the sessions in progress. They may be credentials: they
// are never printed or recorded.
type echoes struct {
	fields []string // headers of answers to look at; nil if nothing is echoed

	mu       sync.Mutex
	counts   []EchoCount
	sessions map[string][]string // the values of a session, "" for none
	bytes    int
}

// turn is a turn of a session whose values are echoed.
type turn struct {
	session string
	last    bool          // of the session
	later   bool          // an earlier turn was answered
	sent    []string      // values
	answer  []http1.Field // set by Send
}

func newEchoes(list []Echo) *echoes {
	e := &echoes{sessions: map[string][]string{}}
	for _, x := range list {
		e.counts = append(e.counts, EchoCount{Echo: x})
		if x.Cookie {
			x.Name = fasthttp.HeaderSetCookie
		}
		e.fields = append(e.fields, x.Name)
	}
	return e
}

// Echoed returns the counts for Config.Echo.
func (c *Client) Echoed() []EchoCount {
	c.echo.mu.Lock()
	defer c.echo.mu.Unlock()
	return slices.Clone(c.echo.counts)
}

// add adds a session's values to a request. It returns nil if nothing is echoed.
func (e *echoes) add(head *fasthttp.RequestHeader, session string) *turn {
	if e.fields == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	values, later := e.sessions[session]
	t := &turn{session: session, later: later, sent: values}
	for i, value := range values {
		switch {
		case value == "":
		case e.counts[i].Cookie:
			head.SetCookie(e.counts[i].Name, value)
		default:
			head.Set(e.counts[i].sentAs(), value)
		}
	}
	return t
}

// answered learns the values of an answer. A later one replaces that of an earlier
// answer. The end of the session, or a failed turn, which ends it, drops them. A
// turn that is refused may be sent again.
func (e *echoes) answered(t *turn, status int, class replay.Class) {
	if t == nil || status == fasthttp.StatusTooManyRequests || status == fasthttp.StatusServiceUnavailable {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	values := make([]string, len(e.counts))
	for i := range e.counts {
		count, value := &e.counts[i], t.valueOf(e.counts[i].Echo)
		switch {
		case status != fasthttp.StatusOK:
		case !t.later && value == "":
			count.Missing++
		case !t.later:
		case t.sent[i] == "":
			count.Without++
		default:
			count.With++
		}
		if value == "" && t.later {
			value = t.sent[i]
		}
		values[i] = value
	}
	e.forget(t.session)
	if class == replay.OK && !t.last {
		e.keep(t.session, values)
	}
}

func (e *echoes) forget(session string) {
	if values, ok := e.sessions[session]; ok {
		e.bytes -= echoSize(session, values)
		delete(e.sessions, session)
	}
}

func (e *echoes) keep(session string, values []string) {
	size := echoSize(session, values)
	if e.bytes+size > maxEchoBytes {
		for i := range values {
			if values[i] != "" {
				e.counts[i].Dropped++
			}
		}
		return
	}
	e.sessions[session] = values
	e.bytes += size
}

// echoSize returns about the memory for the values of a session.
func echoSize(session string, values []string) int {
	size := 64 + len(session) + 16*len(values)
	for _, v := range values {
		size += len(v)
	}
	return size
}

// valueOf returns the value that the answer gives, "" if there is none.
func (t *turn) valueOf(e Echo) string {
	for _, f := range t.answer {
		name, value := f.Name, f.Value
		if e.Cookie != strings.EqualFold(name, fasthttp.HeaderSetCookie) {
			continue
		}
		if e.Cookie {
			name, value = cookieOf(f.Value)
		}
		if (name == e.Name || !e.Cookie && strings.EqualFold(name, e.Name)) && headerText(value) {
			return value
		}
	}
	return ""
}

// cookieOf returns the cookie in the value of a Set-Cookie header. Unlike
// fasthttp's parser it keeps quotes, which belong to the value.
func cookieOf(text string) (name, value string) {
	pair, _, _ := strings.Cut(text, ";")
	name, value, _ = strings.Cut(pair, "=")
	return strings.TrimSpace(name), strings.TrimSpace(value)
}

// masked hides the values of a turn in a text of the server.
func (t *turn) masked(text string) string {
	const shortest = 4 // bytes; less is no credential and in any text
	if t == nil {
		return text
	}
	var secrets []string
	add := func(value string) {
		if len(value) >= shortest {
			secrets = append(secrets, value)
		}
	}
	for _, value := range t.sent {
		add(value)
	}
	for _, f := range t.answer {
		add(f.Value)
		if strings.EqualFold(f.Name, fasthttp.HeaderSetCookie) {
			_, value := cookieOf(f.Value)
			add(value)
		}
	}
	// If two have a common prefix, replace the longer one.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, "***")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
