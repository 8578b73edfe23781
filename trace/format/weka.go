package format

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// mostWeka is the largest conversation in bytes that is read.
const mostWeka = 256 << 20

// mostNesting bounds how deep sub-agents can call others.
const mostNesting = 16

// conversation is one that a WEKA file holds, while it is being read: a JSON
// object whose requests have times in seconds since it began, and ids that mean
// something in it alone. Its sub-agents are in one list with its requests and
// have such a list of their own.
type conversation struct {
	name      string
	blockSize int
	global    bool // ids mean the same in all conversations
	requests  []byte
	at        int // of requests
}

// readConversation reads all but the requests.
func readConversation(raw []byte) (c conversation, err error) {
	if err := validObject(raw); err != nil {
		return c, err
	}
	err = members(raw, func(key []byte, at int, raw []byte) (err error) {
		switch string(key) {
		case "id":
			c.name, err = text(raw)
		case "block_size":
			if c.blockSize, err = ParseLength(string(raw)); err == nil && c.blockSize == 0 {
				err = fmt.Errorf("is out of range: %s", Quote(raw))
			}
		case "hash_id_scope":
			var scope string
			if scope, err = text(raw); err == nil && scope != "local" && scope != "global" {
				err = fmt.Errorf("is neither local nor global: %q", scope)
			}
			c.global = scope == "global"
		case "requests":
			c.requests, c.at, err = raw, at, array(raw)
		}
		return keyed(string(key), err)
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

// call is one entry of a list of requests: one, or a sub-agent.
type call struct {
	t, api, think trace.Opt[float64] // ms
	in, out       trace.Opt[int]
	hashes, model []byte
	requests      []byte // of a sub-agent
	at            int    // of requests, in the call
	agent         string
	subagent      bool
	recorded      extra
}

// readCall reads one. Its keys are those of the format.
func readCall(raw []byte) (c call, err error) {
	if err := object(raw); err != nil {
		return c, fmt.Errorf(" %w", err)
	}
	some := func(o *trace.Opt[float64], raw []byte) (err error) {
		o.Set = true
		o.Value, err = seconds(raw)
		return err
	}
	count := func(o *trace.Opt[int], raw []byte) (err error) {
		o.Set = true
		o.Value, err = ParseLength(string(raw))
		return err
	}
	err = members(raw, func(key []byte, at int, raw []byte) (err error) {
		switch string(key) {
		case "t":
			err = some(&c.t, raw)
		case "api_time":
			err = some(&c.api, raw)
		case "think_time":
			err = some(&c.think, raw)
		case "in":
			return dotted(key, count(&c.in, raw))
		case "out":
			return dotted(key, count(&c.out, raw))
		case "hash_ids":
			c.hashes = raw
			return nil
		case "model":
			c.model = raw
			return nil
		case "requests":
			c.requests, c.at = raw, at
			return dotted(key, array(raw))
		case "agent_id":
			c.agent, err = text(raw)
		case "type":
			var kind string
			kind, err = text(raw)
			c.subagent = kind == "subagent"
		case "input_types", "output_types":
			return nil
		}
		c.recorded.add(string(key), raw)
		return dotted(key, err)
	})
	if errors.As(err, &jsonscan.DuplicateKeyError{}) {
		err = fmt.Errorf(": %w", err)
	}
	if err == nil {
		err = c.check(raw)
	}
	return c, err
}

// dotted puts the key of a member before what is wrong with its value.
func dotted(key []byte, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(".%s %w", key, err)
}

func (c *call) check(raw []byte) error {
	switch {
	case !c.t.Set:
		return fmt.Errorf(" has no t: %s", Quote(raw))
	case c.subagent && c.requests == nil:
		return fmt.Errorf(" is a sub-agent without requests: %s", Quote(raw))
	case !c.subagent && (!c.in.Set || !c.out.Set):
		return fmt.Errorf(" has not both in and out: %s", Quote(raw))
	}
	return nil
}

// request is the row of a call. Its time is not known to the call.
func (c *call) request(ids []uint64, of *talk) (r trace.Request, err error) {
	r.InputLength, r.OutputLength = c.in.Value, c.out.Value
	if c.hashes != nil {
		if r.HashIDs, err = ParseIDs(string(c.hashes), ids, r.InputLength); err != nil {
			return r, dotted([]byte("hash_ids"), err)
		}
		if !of.global {
			of.space.apply(r.HashIDs)
		}
	}
	var all extra
	if c.model != nil {
		all.add("model", c.model)
	}
	all.add("recorded", c.recorded.object())
	r.Extra = all.object()
	return r, nil
}

// turns follows one list of requests and finds the times of its turns.
type turns struct {
	recorded bool // RecordedTimes
	notes    *notes

	begun  bool
	end    trace.Opt[float64] // of the turn before
	called bool               // a sub-agent ran since
}

// next gives the times of the turn at t, which is its own time, moved.
func (u *turns) next(c *entry, t float64) (timestamp, delay trace.Opt[float64]) {
	end := u.end
	u.end = trace.Opt[float64]{Value: t + c.api.Value, Set: c.api.Set}
	called := u.called
	u.called = false
	if !u.begun || u.recorded {
		u.begun = true
		return trace.Some(t), delay
	}
	switch {
	case c.think.Set && !called:
		return timestamp, c.think
	case !end.Set:
		u.notes.count("turns with neither a think_time nor an api_time before them, which have their time instead of a delay")
		return trace.Some(t), delay
	}
	return timestamp, trace.Some(round(max(0, t-end.Value)))
}

// agentName names a sub-agent's session. taken counts the names that are there.
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
