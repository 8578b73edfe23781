package format

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// maxWeka is the largest conversation that is accepted, in bytes.
const maxWeka = 256 << 20

// maxNesting is the maximum nesting depth of sub-agents.
const maxNesting = 16

// conversation is a JSON object of a WEKA file. Its requests have times in seconds
// since it began, and block ids that are unique only within it. Its sub-agents
// are listed among its requests and have their own lists of requests.
type conversation struct {
	name      string
	blockSize int
	global    bool // block ids are shared by all conversations
	list      requestList
}

// requestList is a list of requests, at an offset of what has it.
type requestList struct {
	raw []byte
	at  int
}

func (l *requestList) read(at int, raw []byte) (err error) {
	l.at = at
	l.raw, err = parseArray(raw)
	return err
}

// parseScope reports whether block ids are shared by all conversations.
func parseScope(raw []byte) (global bool, err error) {
	scope, err := parseString(raw)
	if err == nil && scope != "local" && scope != "global" {
		err = fmt.Errorf("is neither local nor global: %q", scope)
	}
	return scope == "global", err
}

// parseConversation parses everything except the requests.
func parseConversation(raw []byte) (c conversation, err error) {
	if err := validObject(raw); err != nil {
		return c, err
	}
	err = readMembers("", raw, keys{
		{"id", into(&c.name, parseString)},
		{"block_size", into(&c.blockSize, parseBlockSize)},
		{"hash_id_scope", into(&c.global, parseScope)},
		{"requests", c.list.read},
	}, nil, nil)
	switch {
	case err != nil:
		return c, err
	case c.name == "":
		return c, fmt.Errorf("no id in %s", Quote(raw))
	case c.list.raw == nil:
		return c, fmt.Errorf("no requests in %s", Quote(raw))
	}
	return c, nil
}

// call is an entry of a list of requests: a request or a sub-agent.
type call struct {
	t, api, think trace.Opt[float64] // ms
	in, out       trace.Opt[int]
	hashes, model []byte
	list          requestList // of a sub-agent
	agent, kind   string
	before, next  delayCause // of the delay before it and of that after it
	recorded      jsonscan.Object
}

func parseCall(raw []byte) (c call, err error) {
	if _, err := parseObject(raw); err != nil {
		return c, fmt.Errorf(" %w", err)
	}
	err = readMembers(".", raw, keys{
		{"in", optional(&c.in, parseLength)},
		{"out", optional(&c.out, parseLength)},
		{"hash_ids", into(&c.hashes, parseAnything)},
		{"model", into(&c.model, parseAnything)},
		{"requests", c.list.read},
		{"input_types", into(&c.before, func(raw []byte) (delayCause, error) { return causeOf(raw, `"tool_result"`, `"text"`), nil })},
		{"output_types", into(new([]byte), parseAnything)},
	}, keys{
		{"t", optional(&c.t, parseSeconds)},
		{"api_time", optional(&c.api, parseSeconds)},
		{"think_time", optional(&c.think, parseSeconds)},
		{"agent_id", into(&c.agent, parseString)},
		{"type", into(&c.kind, parseString)},
		{"stop", into(&c.next, func(raw []byte) (delayCause, error) { return causeOf(raw, `"tool_use"`, `"end_turn"`), nil })},
	}, &c.recorded)
	if err == nil {
		err = c.check(raw)
	}
	return c, err
}

// causeOf returns the cause of a delay: a tool if a value has one text, the user if
// it has the other.
func causeOf(raw []byte, tool, user string) delayCause {
	switch {
	case bytes.Contains(raw, []byte(tool)):
		return toolRunning
	case bytes.Contains(raw, []byte(user)):
		return thinking
	}
	return unknownCause
}

func (c *call) subagent() bool { return c.kind == "subagent" }

func (c *call) check(raw []byte) error {
	switch {
	case !c.t.Set:
		return fmt.Errorf(" has no t: %s", Quote(raw))
	case c.subagent() && c.list.raw == nil:
		return fmt.Errorf(" is a sub-agent without requests: %s", Quote(raw))
	case !c.subagent() && (!c.in.Set || !c.out.Set):
		return fmt.Errorf(" needs both in and out: %s", Quote(raw))
	}
	return nil
}

// request returns the row of a call, without times.
func (c *call) request(ids []uint64, of *wekaList) (r trace.Request, err error) {
	r.InputLength, r.OutputLength = c.in.Value, c.out.Value
	if c.hashes != nil {
		if r.HashIDs, err = parseIDs(c.hashes, ids, r.InputLength); err != nil {
			return r, keyed(".hash_ids", err)
		}
		if !of.global {
			of.space.apply(r.HashIDs)
		}
	}
	r.Extra = unknownKeys(c.model, c.recorded, false)
	return r, nil
}

// agentName returns the name of a sub-agent's session. taken counts the names in
// use.
func agentName(session, agent string, taken map[string]int) string {
	first := session + "/" + cmp.Or(agent, "agent")
	name := first
	for taken[name] > 0 {
		taken[first]++
		name = first + "#" + strconv.Itoa(taken[first])
	}
	taken[name]++
	return name
}
