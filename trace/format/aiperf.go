package format

import (
	"encoding/json"
	"fmt"
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
	row       []byte
}

func (a *aiperfRows) parse(line []byte, r *trace.Request) error {
	if err := validObject(line); err != nil {
		return err
	}
	var prompt []byte // the member with the text
	var input, output, delta bool
	var rest object
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
		rest.add(string(key), raw)
		return nil
	})
	if err != nil {
		return err
	}
	if input && output {
		return ParseRow(line, r)
	}
	a.row = append(a.row[:0], '{')
	if !input {
		if prompt == nil {
			return fmt.Errorf("no input_length, text_input, messages or payload in %s", Quote(line))
		}
		a.tokens, a.estimated = 0, false
		if err := a.addPrompt(prompt); err != nil {
			return err
		}
		a.row = append(a.row, `"input_length": `...)
		a.row = strconv.AppendInt(a.row, int64(min(a.tokens, trace.MaxLength)), 10)
		a.row = append(a.row, ", "...)
		if a.estimated {
			a.row = append(a.row, `"estimated": ["input_length"], `...)
			a.notes.count("input lengths estimated from texts, and marked as estimated")
		} else {
			a.notes.count("input lengths counted from texts, without a chat template")
		}
		if delta {
			a.notes.count("rows with only the new messages of their turn (message_mode delta), as are their lengths")
		}
	}
	if !output {
		a.notes.count("rows without an output length, written as 0")
		a.row = append(a.row, `"output_length": 0, "missing": ["output_length"], `...)
	}
	a.row = append(a.row, rest.bytes()[1:]...)
	return ParseRow(a.row, r)
}

// addPrompt counts the tokens of a string, an array of messages, or a payload
// with one of these.
func (a *aiperfRows) addPrompt(raw []byte) error {
	switch raw[0] {
	case '"':
		return a.addString(raw)
	case '[':
		return a.addMessages(raw)
	case '{':
		found := false
		err := members(raw, func(key []byte, _ int, raw []byte) error {
			if k := string(key); k != "prompt" && k != "messages" {
				return nil
			}
			if raw[0] == '{' {
				return fmt.Errorf("payload.%s is neither text nor messages: %s", key, Quote(raw))
			}
			found = true
			return a.addPrompt(raw)
		})
		if err == nil && !found {
			err = fmt.Errorf("payload has neither prompt nor messages: %s", Quote(raw))
		}
		return err
	}
	return fmt.Errorf("the prompt is not text: %s", Quote(raw))
}

func (a *aiperfRows) addString(raw []byte) error {
	s, err := parseString(raw)
	if err != nil {
		return err
	}
	return a.addText(s)
}

func (a *aiperfRows) addText(s string) error {
	a.estimated = a.estimated || !a.counter.exact()
	n, err := a.counter.tokens(s)
	a.tokens += n
	return err
}

// addMessages counts the tokens of messages, or of a prompt of token ids.
func (a *aiperfRows) addMessages(raw []byte) error {
	return jsonscan.Elements(raw, func(_ int, message []byte) error {
		switch c := message[0]; {
		case c == '{':
			return members(message, func(key []byte, _ int, raw []byte) error {
				if string(key) != "content" {
					return nil
				}
				return a.addContent(raw)
			})
		case c >= '0' && c <= '9':
			a.tokens++
			return nil
		case c == '"':
			return a.addString(message)
		}
		return fmt.Errorf("a message is not an object: %s", Quote(message))
	})
}

// addContent counts the tokens of a message: a string, or an array of parts.
func (a *aiperfRows) addContent(raw []byte) error {
	switch raw[0] {
	case '"':
		return a.addString(raw)
	case '[':
		return jsonscan.Elements(raw, a.addPart)
	}
	return fmt.Errorf("content is neither text nor parts: %s", Quote(raw))
}

func (a *aiperfRows) addPart(_ int, part []byte) error {
	var p struct{ Text *string }
	if err := json.Unmarshal(part, &p); err != nil {
		return fmt.Errorf("a part of content is not an object with a text: %s", Quote(part))
	}
	if p.Text == nil {
		a.notes.count("parts of messages other than text (images, sound), not counted")
		return nil
	}
	return a.addText(*p.Text)
}
