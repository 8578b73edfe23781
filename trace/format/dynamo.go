package format

import (
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

const dynamoSchema = "dynamo.request.trace.v1"

// dynamo is the source of a Dynamo server's request log, in one or more files. A
// line is written when its request ends. It holds about 80 bytes per request, 32 per
// tool call and 150 per session.
type dynamo struct {
	indexed[dynamoCall]
	ids []uint64 // to be reused
	dynamoSessions
}

func newDynamo(t textFiles) *dynamo {
	d := &dynamo{dynamoSessions: dynamoSessions{links: links{notes: t.notes}}}
	d.textFiles, d.layout = t, d
	return d
}

// interval is the time that a request ran, in ms since 1970, NaN if unknown.
type interval struct{ begin, end float64 }

// dynamoCall is when a request ended, and its place in its session and its start, once
// they are known.
type dynamoCall struct {
	end   float64
	ref   // the session is -1 if it has none
	start // NaN if unknown
}

// request parses the request at a spot. Its notes were taken when it was indexed.
func (d *dynamo) request(raw []byte, s *spot[dynamoCall], r *trace.Request) error {
	saved := d.notes
	d.notes, d.ids = &notes{}, r.HashIDs
	row, _, err := d.parse(raw)
	d.notes = saved
	if err != nil {
		return trace.ReadError{Err: fmt.Errorf("the file changed while it was read: %w", err)}
	}
	*r = row
	if at := s.about; !math.IsNaN(at.ms) {
		d.links.set(r, at.start, at.ref)
	}
	return nil
}

// index finds the requests of the remaining lines of a file.
func (d *dynamo) index(f *textFile) error {
	return d.lines(f, func(line []byte) error { return d.keep(f, line) })
}

// keep records the position of a line's request, if it has one.
func (d *dynamo) keep(f *textFile, line []byte) error {
	row, e, err := d.parse(line)
	if err == errLeftOut {
		return nil
	}
	if err != nil {
		return otherFormat(err, line, Dynamo)
	}
	d.ids = row.HashIDs
	ran := d.interval(&e)
	return d.add(f, line, ran.begin, dynamoCall{end: ran.end, ref: ref{session: d.numberOf(e.session, e.parent)}})
}

// event is the content of a line.
type event struct {
	schema, kind             string
	session, parent          string
	request, replay, tool    []byte
	time, received, duration float64 // NaN if absent
	outer                    float64
	input, output            int // -1 if absent
}

// parse returns the request of a line. The object around the event is optional.
func (d *dynamo) parse(line []byte) (r trace.Request, e event, err error) {
	none := math.NaN()
	if err := validObject(line); err != nil {
		return r, e, err
	}
	e = event{time: none, received: none, duration: none, outer: none, input: -1, output: -1}
	body := line
	err = readMembers("", line, keys{{"event", into(&body, parseObject)}, {"timestamp", into(&e.outer, parseMilliseconds)}}, nil, nil)
	if err == nil {
		err = e.readBody(body)
	}
	switch {
	case err != nil:
		return r, e, err
	case e.schema != dynamoSchema:
		return r, e, fmt.Errorf("schema is not %s: %q", dynamoSchema, e.schema)
	case e.tool != nil && (e.kind == "tool_end" || e.kind == "tool_error"):
		d.readTool(&e)
		return r, e, errLeftOut
	case e.kind != "request_end":
		d.notes.count(fmt.Sprintf("events other than requests left out (%.40s)", e.kind))
		return r, e, errLeftOut
	case e.request == nil:
		return r, e, fmt.Errorf("no request in %s", Quote(body))
	}
	r, err = d.row(&e)
	return r, e, err
}

func (e *event) readBody(body []byte) error {
	return readMembers("", body, keys{
		{"schema", into(&e.schema, parseString)},
		{"event_type", into(&e.kind, parseString)},
		{"event_time_unix_ms", into(&e.time, parseMilliseconds)},
		{"session_id", into(&e.session, parseString)},
		{"request", into(&e.request, parseObject)},
		{"tool", into(&e.tool, parseObject)},
		{"agent_context", func(_ int, raw []byte) error {
			if _, err := parseObject(raw); err != nil {
				return err
			}
			return readMembers("", raw, keys{{"session_id", into(&e.session, parseString)}, {"parent_session_id", into(&e.parent, parseString)}}, nil, nil)
		}},
	}, nil, nil)
}

// row makes a request of an event.
func (d *dynamo) row(e *event) (trace.Request, error) {
	var recorded jsonscan.Object
	var model []byte
	row := trace.Request{SessionID: e.session}
	err := readMembers("request.", e.request, keys{
		{"input_tokens", into(&e.input, parseLength)},
		{"output_tokens", into(&e.output, parseLength)},
		{"replay", into(&e.replay, parseObject)},
		{"model", into(&model, parseAnything)},
	}, keys{
		{"request_received_ms", into(&e.received, parseMilliseconds)},
		{"total_time_ms", into(&e.duration, parseMilliseconds)},
	}, &recorded)
	if err == nil && e.replay != nil {
		err = d.readReplay(e, &row)
	}
	switch {
	case err != nil:
		return row, err
	case e.input < 0:
		return row, fmt.Errorf("no input_tokens and no replay.input_length in %s", Quote(e.request))
	}
	missing := e.output < 0
	if missing {
		d.notes.count("requests without output_tokens, with an output length of 0")
		e.output = 0
	}
	if e.parent != "" {
		recorded.Add("parent_session_id", quoted(e.parent))
	}
	row.InputLength, row.OutputLength, row.Extra = e.input, e.output, unknownKeys(model, recorded, missing)
	return row, nil
}

// readReplay parses the block hashes of the prompt.
func (d *dynamo) readReplay(e *event, r *trace.Request) error {
	size, tokens := 0, e.input
	var hashes []byte
	err := readMembers("request.replay.", e.replay, keys{
		{"trace_block_size", into(&size, parseBlockSize)},
		{"input_length", into(&tokens, parseLength)},
		{"input_sequence_hashes", into(&hashes, parseAnything)},
	}, nil, nil)
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
func (d *dynamo) interval(e *event) interval {
	begin, end := e.received, e.received+e.duration
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
	return interval{begin, end}
}
