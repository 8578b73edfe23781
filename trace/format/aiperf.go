package format

import (
	"encoding/json"
	"fmt"
	"strconv"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// aiperfRows reads the rows of NVIDIA's AIPerf: those of the native format, and
// such that have a text instead of lengths: text_input, messages, or a payload
// that has either.
type aiperfRows struct {
	notes   *notes
	count   counter
	guessed bool // some tokens of the row
	row     []byte
}

func (a *aiperfRows) read(line []byte, r *trace.Request) error {
	if err := validObject(line); err != nil {
		return err
	}
	var prompt []byte // the member with the text
	var input, output, delta bool
	var rest extra
	err := members(line, func(key []byte, _ int, raw []byte) error {
		switch string(key) {
		case "input_length", "input_tokens":
			input = true
		case "output_length", "output_tokens":
			output = true
		case "text_input", "messages", "payload":
			if prompt != nil && !input {
				return fmt.Errorf("%s stands beside another text of the prompt: %s", key, Quote(line))
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
		a.guessed = false
		tokens, err := a.tokens(prompt)
		if err != nil {
			return err
		}
		a.row = append(a.row, `"input_length": `...)
		a.row = strconv.AppendInt(a.row, int64(min(tokens, trace.MaxLength)), 10)
		a.row = append(a.row, ", "...)
		if a.guessed {
			a.row = append(a.row, `"estimated": ["input_length"], `...)
		}
		a.note(delta)
	}
	if !output {
		a.notes.count("rows without an output length, which is written as 0")
		a.row = append(a.row, `"output_length": 0, "missing": ["output_length"], `...)
	}
	a.row = append(a.row, rest.object()[1:]...)
	return ParseRow(a.row, r)
}

func (a *aiperfRows) note(delta bool) {
	if !a.guessed {
		a.notes.count("input lengths counted from texts, without a chat template")
	} else {
		a.notes.count("input lengths estimated from texts, and marked as such")
	}
	if delta {
		a.notes.count("rows with the new messages of their turn alone (message_mode delta), and so their lengths")
	}
}

func (a *aiperfRows) end() {}

// tokens counts those of a prompt: a string, an array of messages, or a payload
// that has one of these.
func (a *aiperfRows) tokens(raw []byte) (int, error) {
	switch raw[0] {
	case '"':
		return a.text(raw)
	case '[':
		return a.messages(raw)
	case '{':
		total, found := 0, false
		err := members(raw, func(key []byte, _ int, raw []byte) error {
			if k := string(key); k != "prompt" && k != "messages" {
				return nil
			}
			if raw[0] == '{' {
				return fmt.Errorf("payload.%s is neither text nor messages: %s", key, Quote(raw))
			}
			found = true
			n, err := a.tokens(raw)
			total += n
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf("payload has neither prompt nor messages: %s", Quote(raw))
		}
		return total, err
	}
	return 0, fmt.Errorf("the prompt is no text: %s", Quote(raw))
}

func (a *aiperfRows) text(raw []byte) (int, error) {
	s, err := text(raw)
	if err != nil {
		return 0, err
	}
	return a.counted(s)
}

func (a *aiperfRows) counted(s string) (int, error) {
	a.guessed = a.guessed || !a.count.exact()
	return a.count.tokens(s)
}

// messages counts the text of messages. A list of numbers is a prompt of token
// ids.
func (a *aiperfRows) messages(raw []byte) (total int, err error) {
	err = jsonscan.Elements(raw, func(_ int, message []byte) error {
		switch c := message[0]; {
		case c == '{':
			return members(message, func(key []byte, _ int, raw []byte) error {
				if string(key) != "content" {
					return nil
				}
				n, err := a.content(raw)
				total += n
				return err
			})
		case c >= '0' && c <= '9':
			total++
			return nil
		case c == '"':
			n, err := a.text(message)
			total += n
			return err
		}
		return fmt.Errorf("a message is not an object: %s", Quote(message))
	})
	return total, err
}

// content counts what a message says: a string, or parts with a text each.
func (a *aiperfRows) content(raw []byte) (total int, err error) {
	if raw[0] == '"' {
		return a.text(raw)
	}
	if raw[0] != '[' {
		return 0, fmt.Errorf("content is neither text nor parts: %s", Quote(raw))
	}
	err = jsonscan.Elements(raw, func(_ int, part []byte) error {
		var p struct{ Text *string }
		if err := json.Unmarshal(part, &p); err != nil {
			return fmt.Errorf("a part of content is not an object with a text: %s", Quote(part))
		}
		if p.Text == nil {
			a.notes.count("parts of messages that are no text (images, sound) and not counted")
			return nil
		}
		n, err := a.counted(*p.Text)
		total += n
		return err
	})
	return total, err
}
