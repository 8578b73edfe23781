package format

import (
	"fmt"
	"math"

	"moontide/trace"
)

const dynamoSchema = "dynamo.request.trace.v1"

// dynamoRow is one request, with times in ms since 1970.
type dynamoRow struct {
	row        trace.Request
	begin, end float64 // NaN where they are not known
}

// event is what is known of a line.
type event struct {
	schema, kind             string
	session, parent          string
	request, replay          []byte
	time, received, duration float64 // NaN: not said
	outer                    float64
	input, output            int // -1: not said
}

// parse reads one line. What wraps the event may be missing.
func (d *dynamo) parse(line []byte) (dynamoRow, error) {
	none := math.NaN()
	if err := validObject(line); err != nil {
		return dynamoRow{}, err
	}
	e := event{time: none, received: none, duration: none, outer: none, input: -1, output: -1}
	body := line
	err := members(line, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "event":
			body, err = raw, object(raw)
		case "timestamp":
			e.outer, err = millis(raw)
		}
		return keyed(string(key), err)
	})
	if err == nil {
		err = e.readBody(body)
	}
	switch {
	case err != nil:
		return dynamoRow{}, err
	case e.schema != dynamoSchema:
		return dynamoRow{}, fmt.Errorf("schema is not %s: %q", dynamoSchema, e.schema)
	case e.kind != "request_end":
		d.notes.count(fmt.Sprintf("events left out, which are no requests (%.40s)", e.kind))
		return dynamoRow{}, errLeftOut
	case e.request == nil:
		return dynamoRow{}, fmt.Errorf("no request in %s", Quote(body))
	}
	return d.row(&e)
}

func (e *event) readBody(body []byte) error {
	return members(body, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "schema":
			e.schema, err = text(raw)
		case "event_type":
			e.kind, err = text(raw)
		case "event_time_unix_ms":
			e.time, err = millis(raw)
		case "agent_context":
			if err = object(raw); err == nil {
				err = e.readAgent(raw)
			}
		case "session_id":
			e.session, err = text(raw)
		case "request":
			e.request, err = raw, object(raw)
		}
		return keyed(string(key), err)
	})
}

func (e *event) readAgent(raw []byte) error {
	return members(raw, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "session_id":
			e.session, err = text(raw)
		case "parent_session_id":
			e.parent, err = text(raw)
		}
		return keyed(string(key), err)
	})
}

// row makes a request of an event that is one.
func (d *dynamo) row(e *event) (dynamoRow, error) {
	var all, recorded extra
	var model []byte
	row := dynamoRow{row: trace.Request{SessionID: e.session}}
	err := members(e.request, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "input_tokens":
			e.input, err = ParseLength(string(raw))
			return keyed("request.input_tokens", err)
		case "output_tokens":
			e.output, err = ParseLength(string(raw))
			return keyed("request.output_tokens", err)
		case "replay":
			e.replay, err = raw, object(raw)
			return keyed("request.replay", err)
		case "model":
			model = raw
			return nil
		case "request_received_ms":
			e.received, err = millis(raw)
		case "total_time_ms":
			e.duration, err = millis(raw)
		}
		recorded.add(string(key), raw)
		return keyed("request."+string(key), err)
	})
	if err == nil && e.replay != nil {
		err = d.readReplay(e, &row.row)
	}
	switch {
	case err != nil:
		return row, err
	case e.input < 0:
		return row, fmt.Errorf("no input_tokens and no replay.input_length in %s", Quote(e.request))
	case e.output < 0:
		d.notes.count("requests without output_tokens, whose output length is written as 0")
		all.add("missing", []byte(`["output_length"]`))
		e.output = 0
	}
	if model != nil {
		all.add("model", model)
	}
	if e.parent != "" {
		recorded.add("parent_session_id", quoted(e.parent))
	}
	if recorded := recorded.object(); recorded != nil {
		all.add("recorded", recorded)
	}
	row.row.InputLength, row.row.OutputLength, row.row.Extra = e.input, e.output, all.object()
	row.begin, row.end = d.interval(e)
	return row, nil
}

// readReplay reads what is there to repeat the prompt.
func (d *dynamo) readReplay(e *event, r *trace.Request) error {
	size, tokens := 0, e.input
	var hashes []byte
	err := members(e.replay, func(key []byte, _ int, raw []byte) (err error) {
		switch string(key) {
		case "trace_block_size":
			if size, err = ParseLength(string(raw)); err == nil && size == 0 {
				err = fmt.Errorf("is out of range: %s", Quote(raw))
			}
		case "input_length":
			tokens, err = ParseLength(string(raw))
		case "input_sequence_hashes":
			hashes = raw
		}
		return keyed("request.replay."+string(key), err)
	})
	if err != nil {
		return err
	}
	if e.input >= 0 && tokens != e.input {
		d.notes.count("requests with another replay.input_length than input_tokens, of which the former is taken")
	}
	e.input = tokens
	if hashes != nil {
		if r.HashIDs, err = ParseIDs(string(hashes), d.ids, tokens); err != nil {
			return keyed("request.replay.input_sequence_hashes", err)
		}
	}
	switch {
	case size == 0:
	case d.size == 0:
		d.size, d.sizeAt = size, fmt.Sprintf("%s:%d", d.name, d.line)
	case d.size != size:
		return fmt.Errorf("request.replay.trace_block_size is not %d as in %s: %d", d.size, d.sizeAt, size)
	}
	return nil
}

// interval is when a request began and ended, by what is said of it.
func (d *dynamo) interval(e *event) (begin, end float64) {
	begin, end = e.received, e.received+e.duration
	if math.IsNaN(begin) {
		begin, end = e.time-e.duration, e.time
	}
	if math.IsNaN(end) {
		end = e.time
	}
	if math.IsNaN(begin) {
		d.notes.count("requests without a time of arrival, which have that of their record")
		if begin = e.time; math.IsNaN(begin) {
			begin = e.outer
		}
	}
	return begin, end
}
