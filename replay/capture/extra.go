package capture

import (
	"net/http"
	"strconv"

	"moontide/replay"
	"moontide/trace/jsonscan"
)

// recorded is what a row tells about how its request was answered. Times are in
// milliseconds from its arrival at the proxy.
type recorded struct {
	Endpoint  string   `json:"endpoint"`
	Stream    bool     `json:"stream"`
	MaxTokens int      `json:"max_tokens,omitempty"`
	Outcome   string   `json:"outcome"` // ok, or the class of the failure
	Status    int      `json:"status,omitempty"`
	TTFT      *float64 `json:"ttft_ms,omitempty"`
	E2EL      float64  `json:"e2el_ms"`
	Cached    *int     `json:"cached_tokens,omitempty"`
	Reasoning *int     `json:"reasoning_tokens,omitempty"`
}

// extra returns the keys of a row that the trace format does not define.
func (p *Proxy) extra(e *exchange, m marks) []byte {
	row := struct {
		Model     string   `json:"model,omitempty"`
		Priority  int      `json:"priority,omitempty"`
		Turn      int      `json:"turn"`
		Estimated []string `json:"estimated,omitempty"`
		Missing   []string `json:"missing,omitempty"`
		Recorded  recorded `json:"recorded"`
	}{Turn: e.turn.number, Estimated: m.estimated, Missing: m.missing}
	row.Recorded = recorded{
		Endpoint: e.endpoint, Stream: e.streamed, Outcome: outcome(e.class), Status: e.status,
		E2EL: milliseconds(e.ended.Sub(e.arrived)),
	}
	if c := e.call; c != nil {
		row.Model, row.Priority, row.Recorded.MaxTokens = p.modelName(e), c.priority, c.maxTokens
	}
	if !e.seen.First.IsZero() {
		ttft := milliseconds(e.seen.First.Sub(e.arrived))
		row.Recorded.TTFT = &ttft
	}
	if n := e.seen.Counts.Cached; n.Set {
		row.Recorded.Cached = &n.Value
	}
	if n := e.seen.Counts.Reasoning; n.Set {
		row.Recorded.Reasoning = &n.Value
	}
	text, _ := jsonscan.Strict.Marshal(row)
	return text
}

// maxName limits the name of a model, in bytes.
const maxName = 256

// modelName returns the model of a request. The server knows it if it has answered, so
// it is no secret of the client; any other name is hashed.
func (p *Proxy) modelName(e *exchange) string {
	switch name := e.call.model; {
	case name == "":
		return ""
	case e.status == http.StatusOK && len(name) <= maxName:
		return name
	default:
		return p.keys.models.nameOf(name)
	}
}

func outcome(c replay.Class) string {
	if c == replay.OK {
		return "ok"
	}
	return string(c)
}

// nameOf is what stands for a name in a trace; "" stays "".
func (k Key) nameOf(name string) string {
	if name == "" {
		return ""
	}
	return k.name(name)
}

// oneIn reports whether a name is among one in n.
func (k Key) oneIn(name string, n int) bool {
	hash, _ := strconv.ParseUint(k.name("sample "+name), 16, 64)
	return hash%uint64(n) == 0
}
