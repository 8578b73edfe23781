package format

import (
	"fmt"
	"math"
	"slices"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

const dynamoSchema = "dynamo.request.trace.v1"

// dynamo is the source of a Dynamo server's request log, in one or more files. A
// line is written when its request ends.
type dynamo struct {
	agents
	timelines []dynamoTimeline // by number of the session
}

func newDynamo(t textFiles) *dynamo {
	d := &dynamo{}
	d.textFiles, d.layout = t, d
	return d
}

func (d *dynamo) split(t *Text) units { return t.Line }

// dynamoEvent is the content of a line.
type dynamoEvent struct {
	schema, kind    string
	session, parent string
	request, tool   []byte
	time, outer     float64 // ms since 1970, and of another clock; NaN if absent
}

// parse parses a line. The object around the event is optional.
func (e *dynamoEvent) parse(line []byte) error {
	if err := validObject(line); err != nil {
		return err
	}
	e.time, e.outer = math.NaN(), math.NaN()
	body := line
	err := readMembers("", line, keys{{"event", into(&body, parseObject)}, {"timestamp", into(&e.outer, parseMilliseconds)}}, nil, nil)
	if err != nil {
		return err
	}
	err = readMembers("", body, keys{
		{"schema", into(&e.schema, parseString)},
		{"event_type", into(&e.kind, parseString)},
		{"event_time_unix_ms", into(&e.time, parseMilliseconds)},
		{"session_id", into(&e.session, parseString)},
		{"request", into(&e.request, parseObject)},
		{"tool", into(&e.tool, parseObject)},
		{"agent_context", within(keys{{"session_id", into(&e.session, parseString)}, {"parent_session_id", into(&e.parent, parseString)}})},
	}, nil, nil)
	switch {
	case err != nil:
		return err
	case e.schema != dynamoSchema:
		return fmt.Errorf("schema is not %s: %q", dynamoSchema, e.schema)
	case e.kind == "request_end" && e.request == nil:
		return fmt.Errorf("no request in %s", Quote(body))
	}
	return nil
}

// index adds the request of a line, or the tool call, if it has one.
func (d *dynamo) index(line []byte) error {
	var e dynamoEvent
	if err := e.parse(line); err != nil {
		return err
	}
	switch {
	case e.tool != nil && (e.kind == "tool_end" || e.kind == "tool_error"):
		d.indexTool(&e)
	case e.kind != "request_end":
		d.notes.count(fmt.Sprintf("events other than requests left out (%.40s)", e.kind))
	default:
		return d.indexRequest(&e)
	}
	return nil
}

// indexRequest adds the request of an event.
func (d *dynamo) indexRequest(e *dynamoEvent) (err error) {
	var recorded jsonscan.Object
	var model, hashes []byte
	var input, replayed, output trace.Opt[int]
	size, received, duration := 0, math.NaN(), math.NaN()
	row := trace.Request{SessionID: e.session}
	err = readMembers("request.", e.request, keys{
		{"input_tokens", optional(&input, parseLength)},
		{"output_tokens", optional(&output, parseLength)},
		{"replay", within(keys{
			{"trace_block_size", into(&size, parseBlockSize)},
			{"input_length", optional(&replayed, parseLength)},
			{"input_sequence_hashes", into(&hashes, parseAnything)},
		})},
		{"model", into(&model, parseAnything)},
	}, keys{
		{"request_received_ms", into(&received, parseMilliseconds)},
		{"total_time_ms", into(&duration, parseMilliseconds)},
	}, &recorded)
	if replayed.Set {
		if input.Set && input != replayed {
			d.notes.count("requests whose replay.input_length differs from input_tokens; replay.input_length is used")
		}
		input = replayed
	}
	if err == nil && hashes != nil {
		row.HashIDs, err = parseIDs(hashes, d.ids, input.Value)
		err = keyed("request.replay.input_sequence_hashes", err)
	}
	switch {
	case err != nil:
		return err
	case !input.Set:
		return fmt.Errorf("no input_tokens and no replay.input_length in %s", Quote(e.request))
	case !output.Set:
		d.notes.count("requests without output_tokens, with an output length of 0")
	}
	if err := d.setBlockSize(size); err != nil {
		return keyed("request.replay.trace_block_size", err)
	}
	if e.parent != "" {
		recorded.Add("parent_session_id", quoted(e.parent))
	}
	row.InputLength, row.OutputLength, row.Extra = input.Value, output.Value, unknownKeys(model, recorded, !output.Set)
	begin, end := received, received+duration
	if math.IsNaN(begin) {
		begin, end = e.time-duration, e.time
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
	n := d.numberOf(e.session, e.parent)
	if n >= 0 && !math.IsNaN(begin) {
		d.timelines[n].left++
	}
	return d.addRow(&row, begin, d.line, call{ref: ref{session: n}, end: end})
}

// indexTool keeps when a tool call ended.
func (d *dynamo) indexTool(e *dynamoEvent) {
	begin, end := math.NaN(), math.NaN()
	err := readMembers("tool.", e.tool, keys{{"started_at_unix_ms", into(&begin, parseMilliseconds)}, {"ended_at_unix_ms", into(&end, parseMilliseconds)}}, nil, nil)
	n := d.numberOf(e.session, e.parent)
	if err != nil || n < 0 || !(begin <= end) {
		d.notes.count("tool calls left out because they have no session or no valid times")
		return
	}
	d.notes.count("tool calls, used to tell tool times from think times")
	d.timelines[n].tools = append(d.timelines[n].tools, end)
}

// dynamoTimeline is that of an agent or a sub-agent.
type dynamoTimeline struct {
	timeline
	parent int32     // number of the session, or -1
	tools  []float64 // ends of the tools that it used
	left   int       // requests
}

// numberOf returns the number of a session, or -1 for none.
func (d *dynamo) numberOf(session, parent string) int32 {
	if session == "" {
		return -1
	}
	n, isNew := d.sessionOf(session)
	if isNew {
		d.timelines = append(d.timelines, dynamoTimeline{parent: -1, timeline: timeline{slack: 1}})
	}
	if parent != session && d.timelines[n].parent < 0 {
		of := d.numberOf(parent, "") // may move the timelines
		d.timelines[n].parent = of
	}
	return n
}

// complete finds the starts of all requests.
func (d *dynamo) complete() {
	for i := range d.timelines {
		slices.Sort(d.timelines[i].tools)
	}
	d.startAll(d.start)
	d.timelines = nil
}

// start finds the start of a request that began at t.
func (d *dynamo) start(c *call, t float64) error {
	s := &d.timelines[c.session]
	c.number = s.turns
	parts := s.until(t)
	if s.parent >= 0 && len(parts) == 0 {
		parts = d.timelines[s.parent].caller(t)
	}
	c.kind = s.kindOf(parts, t)
	if err := d.next(&s.timeline, c, t, parts); err != nil {
		return err
	}
	if s.left--; s.left > 0 || s.parent < 0 {
		return nil
	}
	return d.timelines[s.parent].add(s.agent())
}

// kindOf returns the kind of the delay of a request that waits for parts and began at t.
func (s *dynamoTimeline) kindOf(parts []part, t float64) trace.DelayKind {
	last, agents := math.Inf(-1), s.parent >= 0 // no user talks to a sub-agent
	for _, p := range parts {
		last, agents = max(last, p.end), agents || p.agent
	}
	i, _ := slices.BinarySearch(s.tools, last-s.slack)
	switch {
	case agents, i < len(s.tools) && s.tools[i] <= t+s.slack:
		return trace.Tool
	case len(s.tools) > 0:
		return trace.Think
	}
	return ""
}
