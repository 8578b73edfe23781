package openai

import (
	"fmt"
	"strings"

	"moontide/replay"
)

// Remedy is what may help if a server refuses all requests.
type Remedy string

// The remedies.
const (
	UseChat         Remedy = "chat"        // choose the chat endpoint
	UseWords        Remedy = "words"       // send words, not token ids
	UseSmallerIDs   Remedy = "token range" // the model's vocabulary is small
	UseOtherModel   Remedy = "model"       // the server has no such model
	NameModel       Remedy = "no list"     // the server does not list its models
	UseKey          Remedy = "key"         // give an API key, or another one
	UseOtherURL     Remedy = "url"         // the server does not have the path
	UseLessExtra    Remedy = "extra body"  // it refuses a member that the user added
	UseShorterText  Remedy = "context"     // its context is too short for a probe
	UseTokenizer    Remedy = "tokenizer"   // give the model's tokenizer, or choose another API
	UseOtherSetting Remedy = ""            // unknown
)

// RefusedError is the error of a probe that a server refuses in every form tried, or
// to which it does not answer what the run needs.
type RefusedError struct {
	Status int
	Text   string // the server's words, on one line
	Remedy Remedy
}

func (e *RefusedError) Error() string { return e.Text }

// refusal returns the error of a failed probe.
func (c *Client) refusal(o replay.Outcome) error {
	if o.Class != replay.HTTPError && o.Class != replay.Server {
		return fmt.Errorf("%s", o.Error)
	}
	remedy := c.remedy(o.Status, strings.ToLower(o.Error))
	if c.refusedList(o) {
		remedy = UseKey
	}
	return &RefusedError{Status: o.Status, Text: o.Error, Remedy: remedy}
}

func (c *Client) remedy(status int, text string) Remedy {
	switch {
	case status == 401 || status == 403:
		return UseKey
	case c.noSuchModel(status, text):
		return UseOtherModel
	case c.extraNamed(text):
		return UseLessExtra
	case strings.Contains(text, "context length") || strings.Contains(text, "context size"):
		return UseShorterText
	case strings.Contains(text, "vocab"):
		return UseSmallerIDs
	case noSuchAPI(status, text) && c.cfg.Endpoint == Completions:
		return UseChat
	case status == 404 || status == 405:
		return UseOtherURL
	case c.cfg.Prompt == Tokens && noTokenIDs(status, text):
		return UseWords
	}
	return UseOtherSetting
}
