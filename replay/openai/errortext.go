package openai

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode"

	"moontide/replay/openai/sse"
	"moontide/replay/secret"
	"moontide/trace/jsonscan"
)

// errorText describes a response with an error status. location is that of a
// redirect, or "".
func errorText(status int, body []byte, location string) string {
	if location != "" {
		return fmt.Sprintf("HTTP status %d: %s", status, redirectText(withoutSecrets(location)))
	}
	text, ok := messageIn(body)
	if !ok {
		text = pageTitle(string(body))
	}
	if status == 407 {
		text += ": put the user and password into the proxy's URL"
	}
	if text == "" {
		return fmt.Sprintf("HTTP status %d", status)
	}
	return fmt.Sprintf("HTTP status %d: %s", status, text)
}

// pageTitle returns the title of an HTML page, such as gateways answer with, and
// any other text unchanged.
func pageTitle(text string) string {
	_, after, opened := strings.Cut(text, "<title>")
	title, _, closed := strings.Cut(after, "</title>")
	if title = strings.TrimSpace(title); !opened || !closed || title == "" {
		return text
	}
	return html.UnescapeString(title)
}

// redirectText describes a redirect and says what to set instead.
func redirectText(location string) string {
	const refused = "redirects are not followed"
	if strings.HasPrefix(location, "/") && !strings.HasPrefix(location, "//") {
		return fmt.Sprintf("redirected to %s on the same server; %s: change the path of requests to it", location, refused)
	}
	remedy := "the API's address"
	a, err := parseAddress(strings.TrimSuffix(location, "/models"))
	if err == nil && (a.endpoint != "" || strings.HasSuffix(location, "/models")) {
		if remedy = a.String(); a.version != defaultVersion {
			remedy += a.version
		}
	}
	return fmt.Sprintf("redirected to %s; %s: set the URL to %s", location, refused, remedy)
}

// withoutSecrets removes credentials, query and fragment, which may be secret, from
// a URL.
func withoutSecrets(location string) string {
	u, err := url.Parse(location)
	if err != nil || u.Opaque != "" { // as in https:user:password@host
		return "another address"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return secret.URL(u.String())
}

// errorEventText describes an event that reports an error.
func errorEventText(e *sse.ErrorEvent) string {
	if message, ok := messageIn([]byte(e.Data)); ok {
		return message
	}
	if e.Comment != "" {
		return e.Comment
	}
	return e.Error()
}

// messageIn returns the message in a JSON error body.
func messageIn(body []byte) (text string, ok bool) {
	var wrapped struct {
		Error   raw    `json:"error"`
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

// errorMessage returns the message of an error, which is a string or an object
// with a message.
func errorMessage(err []byte) string {
	var object struct {
		Message string `json:"message"`
	}
	if jsonscan.Strict.Unmarshal(err, &object) == nil && object.Message != "" {
		return object.Message
	}
	var text string
	if jsonscan.Strict.Unmarshal(err, &text) == nil && text != "" {
		return text
	}
	return string(err)
}

// newMask returns a replacer for the secrets of a configuration: servers quote
// keys in their errors.
func newMask(cfg Config, servers []*server) *strings.Replacer {
	secrets := []string{cfg.APIKey}
	for _, h := range cfg.Headers {
		_, credentials, _ := strings.Cut(h.Value, " ") // after Bearer or Basic
		secrets = append(secrets, h.Value, strings.TrimSpace(credentials))
	}
	for _, s := range servers {
		secrets = append(append(secrets, queryValues(s.base.query)...), secret.Parts(s.base.prefix+s.base.path)...)
		if s.proxy != nil && s.proxy.URL.User != nil {
			password, _ := s.proxy.URL.User.Password()
			_, encoded, _ := strings.Cut(s.proxy.Authorization(), " ")
			secrets = append(secrets, s.proxy.URL.User.Username(), password, encoded)
		}
	}
	return secret.Replacer(secrets)
}

// printable makes a server's text fit for a log: one line, truncated and masked.
func (c *Client) printable(text string) string { return oneLine(c.mask.Replace(text)) }

// oneLine replaces unprintable characters with spaces and truncates the text to
// 200 characters.
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
