package format

import (
	"bytes"
	"fmt"
	"math"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

const dynamoSchema = "dynamo.request.trace.v1"

// dynamo is the source of a Dynamo server's request log, in one or more files. A
// line is written when its request ends.
type dynamo struct{ agents }

func newDynamo(t textFiles) *dynamo {
	d := &dynamo{agents{numbers: map[string]int32{}}}
	d.textFiles, d.layout = t, d
	return d
}

// dynamoEvent is the content of a line.
type dynamoEvent struct {
	schema, kind    string
	session, parent string
	request, tool   []byte
	time, outer     float64 // ms since 1970, and of another clock; NaN if absent
}

// index adds the request of a line, or the tool call, if it has one.
func (d *dynamo) index(line []byte) error {
	e := dynamoEvent{time: math.NaN(), outer: math.NaN()}
	body := line // the object around the event is optional
	err := readRow(line, keys{{"event", into(&body, parseObject)}, {"timestamp", into(&e.outer, parseMilliseconds)}}, nil, nil)
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
		return fmt.Errorf("schema is not %s", dynamoSchema)
	case e.kind == "request_end" && e.request == nil:
		return fmt.Errorf("no request in %s", Quote(body))
	}
	n, parent := d.sessionOf(e.session), d.sessionOf(e.parent)
	if n >= 0 && n != parent && d.sessions[n].parent < 0 {
		d.sessions[n].parent = parent
	}
	switch {
	case e.tool != nil && (e.kind == "tool_end" || e.kind == "tool_error"):
		d.indexTool(&e, n)
	case e.kind != "request_end":
		d.notes.count(fmt.Sprintf("events other than requests left out (%.40s)", e.kind))
	default:
		return d.indexRequest(&e, n)
	}
	return nil
}

// indexRequest adds the request of an event, which is of the nth session.
func (d *dynamo) indexRequest(e *dynamoEvent, n int32) (err error) {
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
		recorded.Add("parent_session_id", jsonscan.AppendString(nil, e.parent))
	}
	row.InputLength, row.OutputLength, row.Extra = input.Value, output.Value, unknownKeys(model, recorded, !output.Set)
	begin, end := timeOr(received, e.time-duration), timeOr(received+duration, e.time)
	if math.IsNaN(begin) {
		d.notes.count("requests without an arrival time, with the time of their record instead")
		begin = timeOr(e.time, e.outer)
	}
	return d.addRow(&row, begin, d.line, call{ref: ref{session: n}, end: end})
}

// indexTool keeps when a tool call ended, and when it ran if it called a sub-agent.
func (d *dynamo) indexTool(e *dynamoEvent, n int32) {
	tool := part{begin: math.NaN(), end: math.NaN()}
	err := readMembers("tool.", e.tool, keys{
		{"started_at_unix_ms", into(&tool.begin, parseMilliseconds)},
		{"ended_at_unix_ms", into(&tool.end, parseMilliseconds)},
		{"tool_class", into(&tool.agent, func(raw []byte) (bool, error) { return bytes.Contains(bytes.ToLower(raw), []byte("agent")), nil })},
	}, nil, nil)
	if err != nil || n < 0 || !(tool.begin <= tool.end) {
		d.notes.count("tool calls left out because they have no session or no valid times")
		return
	}
	d.notes.count("tool calls, used to tell tool times from think times")
	s := &d.sessions[n]
	s.tools = append(s.tools, tool.end)
	if tool.agent {
		s.calls = append(s.calls, tool)
	}
}
