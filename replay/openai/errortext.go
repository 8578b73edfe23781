package openai

import (
	"fmt"
	"moontide/trace/jsonscan"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// errorMessage returns what an error says, which is an object with a message
// or just the message.
func errorMessage(raw []byte) string {
	var object struct {
		Message string `json:"message"`
	}
	if jsonscan.Strict.Unmarshal(raw, &object) == nil && object.Message != "" {
		return object.Message
	}
	var text string
	if jsonscan.Strict.Unmarshal(raw, &text) == nil && text != "" {
		return text
	}
	return string(raw)
}

// errorText says what a body that is not an answer says.
func errorText(status int, body []byte) string {
	text, ok := saidInError(body)
	if !ok {
		text = string(body)
	}
	return fmt.Sprintf("HTTP status %d: %s", status, text)
}

// saidInError returns what the JSON of an error says, if it says something.
func saidInError(body []byte) (text string, ok bool) {
	var wrapped struct {
		Error   part   `json:"error"`
		Message string `json:"message"` // vLLM before 0.10
		Detail  any    `json:"detail"`  // FastAPI
	}
	if jsonscan.Strict.Unmarshal(body, &wrapped) != nil {
		return "", false
	}
	switch {
	case len(wrapped.Error) > 0 && string(wrapped.Error) != "null":
		return errorMessage(wrapped.Error), true
	case wrapped.Message != "":
		return wrapped.Message, true
	case wrapped.Detail != nil:
		return fmt.Sprint(wrapped.Detail), true
	}
	return "", false
}

// mask replaces what must not be printed. Servers repeat keys in what they
// say about them.
func mask(cfg Config) *strings.Replacer {
	const shortest = 4 // less is no secret, and would garble what it occurs in
	secrets := []string{cfg.APIKey}
	for _, h := range cfg.Headers {
		_, credentials, _ := strings.Cut(h.Value, " ") // behind Bearer or Basic
		secrets = append(secrets, h.Value, strings.TrimSpace(credentials))
	}
	for _, secret := range secrets { // as an error text quotes it
		quoted := strconv.Quote(secret)
		secrets = append(secrets, quoted[1:len(quoted)-1])
	}
	// Of two that begin alike the longer is to be found.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= shortest {
			pairs = append(pairs, secret, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}

// legible is foreign text as it may stand in a log.
func (c *Client) legible(text string) string { return oneLine(c.secrets.Replace(text)) }

// oneLine shortens foreign text so that it can stand in a log or a table.
func oneLine(s string) string {
	const most = 200
	out := make([]rune, 0, most)
	for _, c := range s {
		if !unicode.IsPrint(c) {
			c = ' '
		}
		if out = append(out, c); len(out) == most {
			return string(out) + "..."
		}
	}
	return string(out)
}
