package foreign

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"moontide/trace"
)

const dynamoSchema = "dynamo.request.trace.v1"

// dynamo is the source of what a Dynamo server records of its requests, in one
// file or several. A line is written when a request ends, so that arrivals are
// in no order: all requests are held, with their ids, until the last is read.
type dynamo struct {
	input    files
	notes    *notes
	recorded bool // RecordedTimes
	size     int  // of blocks, 0 where none is known
	sizeAt   string

	at      *trace.Text
	name    string
	pending []dynamoRow
	read    bool  // all of them
	stopped error // reading them, to be told once
	next    int
	line    int
}

// dynamoRow is one request, with times in ms since 1970.
type dynamoRow struct {
	row        trace.Request
	line       int
	begin, end float64 // NaN where they are not known
}

// BlockSize is the tokens of a block, 0 where no request says it.
func (d *dynamo) BlockSize() int {
	d.prepare()
	return d.size
}

func (d *dynamo) Line() int    { return d.line }
func (d *dynamo) Close() error { return d.input.Close() }

func (d *dynamo) Read(r *trace.Request) error {
	if d.prepare(); d.stopped != nil {
		err := d.stopped
		d.stopped = nil
		return err
	}
	if d.next == len(d.pending) {
		return io.EOF
	}
	p := &d.pending[d.next]
	ids := append(r.HashIDs[:0], p.row.HashIDs...)
	known := p.row.HashIDs != nil
	*r = p.row
	if r.HashIDs = nil; known {
		r.HashIDs = ids
	}
	d.line = p.line
	*p = dynamoRow{}
	d.next++
	return nil
}

// prepare reads on to the end, or to the next line that stops it.
func (d *dynamo) prepare() {
	if d.read || d.stopped != nil {
		return
	}
	if d.stopped = d.readAll(); d.stopped == nil {
		d.read = true
		d.arrange()
	}
}

// readAll reads the lines that are left. After an error about a row it can be
// called again.
func (d *dynamo) readAll() error {
	for {
		if d.at == nil {
			var err error
			if d.at, d.name, err = d.input.Next(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
		line, err := d.at.Line()
		d.line = d.at.Number()
		switch {
		case err == io.EOF:
			d.at = nil
			continue
		case err == nil && len(line) == 0:
			continue
		case err == nil:
			var row dynamoRow
			if row, err = d.parse(line); err == nil {
				row.line = d.line
				d.pending = append(d.pending, row)
				continue
			}
			if err == errLeftOut {
				continue
			}
			err = mixed(err, line, Dynamo)
		}
		return &trace.RowError{File: d.name, Line: d.line, Err: err}
	}
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
		return dynamoRow{}, fmt.Errorf("no request in %s", trace.Quote(body))
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
			e.input, err = trace.ParseLength(string(raw))
			return keyed("request.input_tokens", err)
		case "output_tokens":
			e.output, err = trace.ParseLength(string(raw))
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
		return row, fmt.Errorf("no input_tokens and no replay.input_length in %s", trace.Quote(e.request))
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
			if size, err = trace.ParseLength(string(raw)); err == nil && size == 0 {
				err = fmt.Errorf("is out of range: %s", trace.Quote(raw))
			}
		case "input_length":
			tokens, err = trace.ParseLength(string(raw))
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
		if r.HashIDs, err = trace.ParseIDs(string(hashes), nil, tokens); err != nil {
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

// arrange puts the requests in order of arrival and gives them times.
func (d *dynamo) arrange() {
	slices.SortStableFunc(d.pending, func(a, b dynamoRow) int { return cmp.Compare(a.begin, b.begin) })
	origin := 0.0
	i := slices.IndexFunc(d.pending, func(p dynamoRow) bool { return !math.IsNaN(p.begin) })
	if i >= 0 {
		origin = d.pending[i].begin
	}
	ends := map[string]float64{} // of the turns before
	for i := range d.pending {
		p := &d.pending[i]
		if math.IsNaN(p.begin) {
			continue
		}
		p.row.Timestamp = trace.Some(p.begin - origin)
		session := p.row.SessionID
		if session == "" {
			continue
		}
		before, later := ends[session]
		if !later || !(before > p.end) {
			ends[session] = p.end
		}
		switch {
		case !later || math.IsNaN(before) || d.recorded:
		case p.begin < before:
			d.notes.count("turns that began before the turn before them had ended, which have their time instead of a delay")
		default:
			p.row.Delay, p.row.Timestamp = trace.Some(round(p.begin-before)), trace.Opt[float64]{}
		}
	}
}

// round takes off what the sum of milliseconds since 1970 and of a duration
// cannot tell: it is exact to a microsecond.
func round(ms float64) float64 { return math.Round(ms*1000) / 1000 }
