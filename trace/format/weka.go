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
	requests  []byte
	at        int // offset of requests
}

// parseConversation parses everything except the requests.
func parseConversation(raw []byte) (c conversation, err error) {
	if err := validObject(raw); err != nil {
		return c, err
	}
	err = fields("", raw, func(key []byte, at int, raw []byte) (err error) {
		switch string(key) {
		case "id":
			c.name, err = parseString(raw)
		case "block_size":
			c.blockSize, err = parseBlockSize(raw)
		case "hash_id_scope":
			var scope string
			if scope, err = parseString(raw); err == nil && scope != "local" && scope != "global" {
				err = fmt.Errorf("is neither local nor global: %q", scope)
			}
			c.global = scope == "global"
		case "requests":
			c.requests, c.at, err = raw, at, isArray(raw)
		}
		return err
	})
	switch {
	case err != nil:
		return c, err
	case c.name == "":
		return c, fmt.Errorf("no id in %s", Quote(raw))
	case c.requests == nil:
		return c, fmt.Errorf("no requests in %s", Quote(raw))
	}
	return c, nil
}

// call is an entry of a list of requests: a request or a sub-agent.
type call struct {
	t, api, think trace.Opt[float64] // ms
	in, out       trace.Opt[int]
	hashes, model []byte
	requests      []byte // of a sub-agent
	at            int    // offset of requests in the call
	agent         string
	subagent      bool
	before, next  delayCause // of the delay before it and of that after it
	recorded      jsonscan.Object
}

func parseCall(raw []byte) (c call, err error) {
	if err := isObject(raw); err != nil {
		return c, fmt.Errorf(" %w", err)
	}
	err = fields(".", raw, func(key []byte, at int, raw []byte) (err error) {
		switch string(key) {
		case "t":
			err = set(&c.t, raw, parseSeconds)
		case "api_time":
			err = set(&c.api, raw, parseSeconds)
		case "think_time":
			err = set(&c.think, raw, parseSeconds)
		case "in":
			return set(&c.in, raw, parseLength)
		case "out":
			return set(&c.out, raw, parseLength)
		case "hash_ids":
			c.hashes = raw
			return nil
		case "model":
			c.model = raw
			return nil
		case "requests":
			c.requests, c.at = raw, at
			return isArray(raw)
		case "agent_id":
			c.agent, err = parseString(raw)
		case "type":
			var kind string
			kind, err = parseString(raw)
			c.subagent = kind == "subagent"
		case "input_types":
			c.before = causeOf(raw, `"tool_result"`, `"text"`)
			return nil
		case "output_types":
			return nil
		case "stop":
			c.next = causeOf(raw, `"tool_use"`, `"end_turn"`)
		}
		c.recorded.Add(string(key), raw)
		return err
	})
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

func (c *call) check(raw []byte) error {
	switch {
	case !c.t.Set:
		return fmt.Errorf(" has no t: %s", Quote(raw))
	case c.subagent && c.requests == nil:
		return fmt.Errorf(" is a sub-agent without requests: %s", Quote(raw))
	case !c.subagent && (!c.in.Set || !c.out.Set):
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
