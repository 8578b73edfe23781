package format

import (
	"fmt"
	"math"

	"moontide/trace"
)

const dynamoSchema = "dynamo.request.trace.v1"

// event is the content of a line.
type event struct {
	schema, kind             string
	session, parent          string
	request, replay          []byte
	time, received, duration float64 // NaN if absent
	outer                    float64
	input, output            int // -1 if absent
}

// parse returns the request of a line and when it ran. The object around the
// event is optional.
func (d *dynamo) parse(line []byte) (r trace.Request, s dynamoSpot, err error) {
	none := math.NaN()
	if err := validObject(line); err != nil {
		return r, s, err
	}
	e := event{time: none, received: none, duration: none, outer: none, input: -1, output: -1}
	body := line
	err = members(line, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "event":
			body, err = raw, isObject(raw)
		case "timestamp":
			e.outer, err = parseMilliseconds(raw)
		}
		return keyed(string(key), err)
	})
	if err == nil {
		err = e.readBody(body)
	}
	switch {
	case err != nil:
		return r, s, err
	case e.schema != dynamoSchema:
		return r, s, fmt.Errorf("schema is not %s: %q", dynamoSchema, e.schema)
	case e.kind != "request_end":
		d.notes.count(fmt.Sprintf("events other than requests left out (%.40s)", e.kind))
		return r, s, errLeftOut
	case e.request == nil:
		return r, s, fmt.Errorf("no request in %s", Quote(body))
	}
	if r, err = d.row(&e); err == nil {
		s.begin, s.end = d.interval(&e)
	}
	return r, s, err
}

func (e *event) readBody(body []byte) error {
	return members(body, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "schema":
			e.schema, err = parseString(raw)
		case "event_type":
			e.kind, err = parseString(raw)
		case "event_time_unix_ms":
			e.time, err = parseMilliseconds(raw)
		case "agent_context":
			if err = isObject(raw); err == nil {
				err = e.readAgent(raw)
			}
		case "session_id":
			e.session, err = parseString(raw)
		case "request":
			e.request, err = raw, isObject(raw)
		}
		return keyed(string(key), err)
	})
}

func (e *event) readAgent(raw []byte) error {
	return members(raw, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "session_id":
			e.session, err = parseString(raw)
		case "parent_session_id":
			e.parent, err = parseString(raw)
		}
		return keyed(string(key), err)
	})
}

// row makes a request of an event.
func (d *dynamo) row(e *event) (trace.Request, error) {
	var all, recorded object
	var model []byte
	row := trace.Request{SessionID: e.session}
	err := members(e.request, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "input_tokens":
			e.input, err = parseLength(raw)
			return keyed("request.input_tokens", err)
		case "output_tokens":
			e.output, err = parseLength(raw)
			return keyed("request.output_tokens", err)
		case "replay":
			e.replay, err = raw, isObject(raw)
			return keyed("request.replay", err)
		case "model":
			model = raw
			return nil
		case "request_received_ms":
			e.received, err = parseMilliseconds(raw)
		case "total_time_ms":
			e.duration, err = parseMilliseconds(raw)
		}
		recorded.add(string(key), raw)
		return keyed("request."+string(key), err)
	})
	if err == nil && e.replay != nil {
		err = d.readReplay(e, &row)
	}
	switch {
	case err != nil:
		return row, err
	case e.input < 0:
		return row, fmt.Errorf("no input_tokens and no replay.input_length in %s", Quote(e.request))
	case e.output < 0:
		d.notes.count("requests without output_tokens, with an output length of 0")
		all.add("missing", []byte(`["output_length"]`))
		e.output = 0
	}
	if model != nil {
		all.add("model", model)
	}
	if e.parent != "" {
		recorded.add("parent_session_id", quoted(e.parent))
	}
	all.addObject("recorded", recorded)
	row.InputLength, row.OutputLength, row.Extra = e.input, e.output, all.bytes()
	return row, nil
}

// readReplay parses the block hashes of the prompt.
func (d *dynamo) readReplay(e *event, r *trace.Request) error {
	size, tokens := 0, e.input
	var hashes []byte
	err := members(e.replay, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "trace_block_size":
			size, err = parseBlockSize(raw)
		case "input_length":
			tokens, err = parseLength(raw)
		case "input_sequence_hashes":
			hashes = raw
		}
		return keyed("request.replay."+string(key), err)
	})
	if err != nil {
		return err
	}
	if e.input >= 0 && tokens != e.input {
		d.notes.count("requests whose replay.input_length differs from input_tokens; replay.input_length is used")
	}
	e.input = tokens
	if hashes != nil {
		if r.HashIDs, err = parseIDs(hashes, d.ids, tokens); err != nil {
			return keyed("request.replay.input_sequence_hashes", err)
		}
	}
	return keyed("request.replay.trace_block_size", d.setBlockSize(size, d.name, d.line))
}

// interval returns when a request began and ended, from the times it has.
func (d *dynamo) interval(e *event) (begin, end float64) {
	begin, end = e.received, e.received+e.duration
	if math.IsNaN(begin) {
		begin, end = e.time-e.duration, e.time
	}
	if math.IsNaN(end) {
		end = e.time
	}
	if math.IsNaN(begin) {
		d.notes.count("requests without an arrival time, with the time of their record instead")
		if begin = e.time; math.IsNaN(begin) {
			begin = e.outer
		}
	}
	return begin, end
}
