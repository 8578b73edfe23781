package requestlog

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"
)

// generates reports whether the name of a call, or the path of an API, is one that
// generates text.
func generates(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), "?")
	if slices.ContainsFunc([]string{"get_", "delete_", "list_", "cancel_"}, func(other string) bool { return strings.Contains(name, other) }) {
		return false
	}
	return slices.ContainsFunc([]string{"completion", "completions", "responses", "messages", "generate", "chat", "generate_content", "generate_content_stream", "generatecontent", "pass_through_endpoint", "passthrough_route"},
		func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// otherCall returns ErrOtherCall if one of some members names a call that generates no
// text.
func (f *fields) otherCall(names ...string) error {
	if name := f.text(names...); name != "" && !generates(name) {
		return ErrOtherCall
	}
	return nil
}

// batch reads a line of a batch: a request, or the answer to one.
func (e *Entry) batch(f *fields) error {
	if err := f.otherCall("url"); err != nil {
		return err
	}
	e.ID = f.text("custom_id")
	response := f.object("response")
	switch asked, answered := f.has("body"), f.has("response") || f.has("error"); {
	case !asked:
		e.Half = AnswerHalf
	case !answered:
		e.Half = RequestHalf
	}
	e.request(f, "body")
	e.result(f, response)
	return nil
}

// result reads the HTTP response of a request.
func (e *Entry) result(f, response *fields) {
	if status := response.number("status_code", "statusCode"); status.Set {
		e.Status = int(status.Value)
	}
	if raw := response.members["body"]; raw != nil {
		e.answer(response, "body", raw)
	}
	if e.Status >= 300 || e.Status < 0 {
		e.fail("", "", e.Status)
	}
	if failure := f.members["error"]; failure != nil && string(failure) != `""` {
		in := &fields{members: members{}}
		if failure[0] == '{' {
			in = f.object("error")
		}
		e.fail(in.text("type"), in.text("code"), e.Status)
	}
	f.within(response)
}

// request takes the body of a request from a member.
func (e *Entry) request(f *fields, name string) {
	maps.Copy(e.Body, f.object(name).members)
}

// exchange reads an entry with a request and a response, each a body, or an object with
// one.
func (e *Entry) exchange(f *fields) error {
	request := f.object("request", "request_body")
	for _, of := range []*fields{f, request} {
		if err := of.otherCall("url", "path", "endpoint", "uri"); err != nil {
			return err
		}
	}
	e.ID = f.text("id", "request_id", "requestId", "_id")
	e.timesOf(f)
	if name, body := request.first("body", "json", "data"); body != nil && !request.has("messages") {
		e.request(request, name)
	} else {
		maps.Copy(e.Body, request.members)
	}
	f.within(request)
	e.Status = int(f.number("status_code", "status", "response_status").Value)
	name, raw := f.first("response", "response_body")
	response := &fields{members: members{}}
	if raw != nil && unwrap(raw)[0] == '{' {
		response = f.object(name)
	}
	if raw != nil && !response.has("body") {
		e.answer(f, name, raw)
	}
	e.result(f, response)
	usage := f.object("usage")
	e.Usage.add(usage.usage())
	f.within(usage)
	return nil
}

// timesOf reads the times by the names that gateways and SDKs use for them.
func (e *Entry) timesOf(f *fields) {
	e.Begin = f.time("startTime", "start_time", "started_at", "request_time", "requestTimestamp", "request_timestamp", "created_at", "timestamp", "time", "ts")
	e.First = f.time("completionStartTime", "completion_start_time", "first_token_time", "first_token_at")
	e.End = f.time("endTime", "end_time", "ended_at", "finished_at", "response_time", "responseTimestamp", "response_timestamp")
	if e.First.IsZero() {
		e.First = f.after(e.Begin, "timeToFirstToken", "time_to_first_token")
	}
	if e.End.IsZero() {
		e.End = f.after(e.Begin, "latency", "duration", "duration_s")
	}
	if ms := f.number("latency_ms", "duration_ms", "durationMs"); ms.Set && e.End.IsZero() && !e.Begin.IsZero() && ms.Value > 0 && ms.Value < 1e10 {
		e.End = e.Begin.Add(time.Duration(ms.Value * float64(time.Millisecond)))
	}
}

// nested reports whether a value is an object or array with something in it.
func nested(raw []byte) bool {
	return len(raw) > 2 && (raw[0] == '{' || raw[0] == '[') && len(bytes.TrimSpace(raw[1:len(raw)-1])) > 0
}
