package log

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/trace/jsonscan"
)

// chat collects the messages of a request from events and log records of its span.
type chat struct {
	members          // of the span, with attributes of all
	prompt, response [][]byte
	unread           bool // a message has no content
}

// addMessages adds to the members of a span its attributes, and what its events and log
// records have of the conventions for generative AI: attributes with all messages, or a
// message each. Old conventions become new ones. It returns the attributes of the span, and
// whether a message has no content: then the others are no prompt.
func (m members) addMessages(records [][]byte) (attributes members, unread bool) {
	c := chat{members: m}
	elements(m["events"], c.add)
	for _, record := range records {
		c.add(record)
	}
	attributes = attributesOf(m["attributes"])
	for name, value := range attributes {
		if strings.Contains(name, ".") { // as those of all conventions
			m[name] = value
		}
	}
	c.prompt = append(c.prompt, indexed(attributes, "gen_ai.prompt.")...)
	if _, all := m.first(allMessages); all == nil && len(c.prompt) > 0 && !c.unread {
		m["gen_ai.input.messages"] = list(c.prompt)
	}
	c.response = append(c.response, indexed(attributes, "gen_ai.completion.")...)
	if _, all := m.first(responses); all == nil && len(c.response) > 0 {
		m["gen_ai.output.messages"] = list(c.response)
	}
	return attributes, c.unread
}

// add takes what an event or a log record has.
func (c *chat) add(raw []byte) {
	in, _ := membersOf(raw)
	event := attributesOf(in["attributes"])
	for name, value := range event {
		if strings.HasPrefix(name, "gen_ai.") {
			c.members[name] = value
		}
	}
	body := in["body"]
	if value := plainJSON(body, 0); value != nil {
		body = value
	}
	if m, err := membersOf(unwrap(body)); err == nil {
		maps.Copy(event, m)
	} else if len(body) > 0 {
		event["content"] = body
	}
	name := cmp.Or(Lookup(in, "eventName"), Lookup(in, "event_name"), Lookup(event, "event.name"), Lookup(in, "name"))
	role, isMessage := strings.CutSuffix(strings.TrimPrefix(name, "gen_ai."), ".message")
	switch {
	case name == "gen_ai.choice":
		if _, raw := event.first(contents); raw != nil {
			c.response = append(c.response, unwrap(raw))
		}
	case isMessage:
		if message := event.message(role); message != nil {
			c.prompt = append(c.prompt, message)
		} else {
			c.unread = true
		}
	case strings.Contains(name, "first_token"):
		_, c.members["first_token_at"] = in.first(begins)
	}
}

// contents are the names of what an event has of a message.
var contents = strings.Fields("gen_ai.event.content message content")

// message returns the message that an event for a role has, nil if it has none.
func (m members) message(role string) []byte {
	_, content := m.first(contents)
	if content = unwrap(content); len(content) > 0 && content[0] == '{' {
		return content
	}
	calls := unwrap(m["tool_calls"])
	if _, empty := m["content"]; len(content) == 0 && len(calls) == 0 && !empty {
		return nil
	}
	var message jsonscan.Object
	message.Add("role", jsonscan.AppendString(nil, cmp.Or(textOf(m["role"]), role)))
	message.Add("content", content)
	message.Add("tool_calls", calls)
	return message.Bytes()
}

// indexed returns the messages whose members are attributes like gen_ai.prompt.0.role.
func indexed(attributes members, prefix string) (all [][]byte) {
	names := slices.Sorted(maps.Keys(attributes))
	for {
		var message jsonscan.Object
		of := prefix + strconv.Itoa(len(all)) + "."
		first, _ := slices.BinarySearch(names, of)
		for _, name := range names[first:] {
			member, ok := strings.CutPrefix(name, of)
			if !ok {
				break
			}
			message.Add(member, unwrap(attributes[name]))
		}
		if message.Bytes() == nil {
			return all
		}
		all = append(all, message.Bytes())
	}
}

// span returns the name of a span, or of that of a log record, in a trace, "" if it has none.
// Exporters write ids in hexadecimal, some with a prefix.
func (f *fields) span() string {
	digits := func(names []string) string { return strings.ToLower(strings.TrimPrefix(f.text(names), "0x")) }
	trace, span := digits(traceIDs), digits(spanIDs)
	if strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "" {
		return ""
	}
	return trace + "/" + span
}

// attributesOf returns attributes as members, whose values are plain JSON. OTLP has a list
// of keys with typed values, other exporters have an object.
func attributesOf(raw []byte) members {
	m, err := membersOf(raw)
	if err != nil {
		m = members{}
		keyValues(raw, 0, func(key string, value []byte) { m[key] = value })
	}
	return m
}

// keyValues calls visit for the keys and values, as plain JSON, of a list of OTLP.
func keyValues(raw []byte, depth int, visit func(key string, value []byte)) {
	elements(raw, func(element []byte) {
		m, _ := membersOf(element)
		if value := plainJSON(m["value"], depth); value != nil {
			visit(textOf(m["key"]), value)
		}
	})
}

// maxNested limits the nesting of an attribute.
const maxNested = 64

// plainJSON returns a typed value of OTLP as plain JSON, nil if there is none.
func plainJSON(raw []byte, depth int) []byte {
	m, err := membersOf(raw)
	if err != nil || depth > maxNested {
		return nil
	}
	for kind, value := range m {
		in, scalar := membersOf(value)
		switch strings.ReplaceAll(strings.ToLower(kind), "_", "") {
		case "stringvalue", "intvalue", "doublevalue", "boolvalue", "bytesvalue":
			if scalar == nil || value[0] == '[' {
				return nil
			}
			return value
		case "arrayvalue":
			var all [][]byte
			elements(in["values"], func(element []byte) {
				if v := plainJSON(element, depth+1); v != nil {
					all = append(all, v)
				}
			})
			return list(all)
		case "kvlistvalue":
			var all jsonscan.Object
			keyValues(in["values"], depth+1, all.Add)
			if all.Bytes() == nil {
				return []byte("{}")
			}
			return all.Bytes()
		}
	}
	return nil
}
