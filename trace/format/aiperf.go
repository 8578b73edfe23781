package format

import (
	"fmt"
	"slices"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// aiperfRows parses the rows of NVIDIA's AIPerf: native rows, and rows that have
// a text instead of lengths: text_input, messages, or a payload with either.
type aiperfRows struct {
	notes     *notes
	counter   tokenCounter
	tokens    int  // of the current row's text
	estimated bool // these tokens, or some of them
}

func (a *aiperfRows) parse(line []byte, r *trace.Request) error {
	if err := validObject(line); err != nil {
		return err
	}
	var prompt []byte // the member with the text
	var input, output, delta bool
	err := members(line, func(key []byte, _ int, raw []byte) error {
		switch string(key) {
		case "input_length", "input_tokens":
			input = true
		case "output_length", "output_tokens":
			output = true
		case "text_input", "messages", "payload":
			if prompt != nil && !input {
				return fmt.Errorf("%s is a second text of the prompt: %s", key, Quote(line))
			}
			prompt = raw
		case "message_mode":
			delta = string(raw) == `"delta"`
		case "tools":
			a.notes.count("rows with tools, whose definitions are not counted")
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case input && output:
		return ParseRow(line, r)
	case !input && prompt == nil:
		return fmt.Errorf("no input_length, text_input, messages or payload in %s", Quote(line))
	}
	var row jsonscan.Object
	if !input {
		a.tokens, a.estimated = 0, false
		if err := a.addTexts(prompt); err != nil {
			return err
		}
		if a.tokens == 0 && prompt[0] == '{' {
			return fmt.Errorf("payload has neither prompt nor messages: %s", Quote(prompt))
		}
		row.Add("input_length", strconv.AppendInt(nil, int64(min(a.tokens, trace.MaxLength)), 10))
		if a.estimated {
			row.Add("estimated", []byte(`["input_length"]`))
			a.notes.count("input lengths estimated from texts, and marked as estimated")
		} else {
			a.notes.count("input lengths counted from texts, without a chat template")
		}
		if delta {
			a.notes.count("rows with only the new messages of their turn (message_mode delta), as are their lengths")
		}
	}
	if !output {
		row.Add("output_length", []byte("0"))
		row.Add("missing", []byte(`["output_length"]`))
		a.notes.count("rows without an output length, written as 0")
	}
	members(line, func(key []byte, _ int, raw []byte) error { row.Add(string(key), raw); return nil })
	return ParseRow(row.Bytes(), r)
}

// textMembers are the members of payloads, messages and their parts that have texts.
var textMembers = []string{"prompt", "messages", "content", "text"}

// addTexts counts the tokens of a prompt: a text, token ids, messages with texts or parts,
// or a payload with either.
func (a *aiperfRows) addTexts(raw []byte) error {
	switch c := raw[0]; {
	case c == '"':
		s, err := parseString(raw)
		if err != nil {
			return err
		}
		a.estimated = a.estimated || a.counter == nil
		n, err := a.counter.tokens(s)
		a.tokens += n
		return err
	case c == '[':
		return jsonscan.Elements(raw, func(_ int, element []byte) error { return a.addTexts(element) })
	case c == '{':
		found := false
		err := members(raw, func(key []byte, _ int, raw []byte) error {
			if !slices.Contains(textMembers, string(key)) {
				return nil
			}
			found = true
			return a.addTexts(raw)
		})
		if err == nil && !found {
			a.notes.count("parts of messages other than text (images, sound), not counted")
		}
		return err
	case c >= '0' && c <= '9':
		a.tokens++
		return nil
	}
	return fmt.Errorf("the prompt is not text: %s", Quote(raw))
}
