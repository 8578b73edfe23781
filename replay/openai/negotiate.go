package openai

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moontide/replay"
	"moontide/trace"
)

// maxRefusals is how often Probe changes its requests for a server. With the list
// of models and two accepted prompts, it sends eight requests at most.
const maxRefusals = 5

// beginNegotiation returns to what was asked for: an endpoint that is not ready yet
// may have refused everything.
func (c *Client) beginNegotiation() {
	model := c.cfg.Model
	c.cfg, c.caps = c.asked, presetOf(c.asked.Server).caps
	c.cfg.Model = cmp.Or(c.cfg.Model, model)
	a := apiOf(c.cfg.Endpoint)
	c.caps.ignoreEOS = c.caps.ignoreEOS && a.ignoreEOS && !c.cfg.StopAtEOS
	c.caps.minTokens = c.caps.minTokens && a.least != "" && !c.cfg.StopAtEOS
	if c.live != nil {
		c.live.more = trace.Opt[int]{}
		c.caps.chunkTokens |= inTokenIDs
	}
}

// concession is something that requests can do without if a server refuses it.
type concession struct {
	// names are parts of messages that refuse it, in lower case.
	names []string
	// refused replaces names where the status counts.
	refused func(status int, text string) bool
	// unnamed means that the server may refuse it without naming it.
	unnamed bool
	// drop changes the requests. It returns false if they do not depend on it, and
	// what the user has to know, which may be nothing.
	drop func(c *Client) (note string, ok bool)
}

// concessions are in the order in which they are tried if the server does not say
// what it refuses: what costs least comes first.
var concessions = []concession{
	{names: []string{"vocab", "invalid token"}, drop: (*Client).narrowTokens},
	{refused: noSuchAPI, drop: (*Client).dropCompletions},
	{names: []string{"continuous_usage_stats", "return_token_ids", "stream_options"}, unnamed: true, drop: (*Client).dropChunkTokens},
	{names: []string{"ignore_eos"}, drop: func(c *Client) (string, bool) { return c.dropLengths("ignore_eos", &c.caps.ignoreEOS) }},
	{names: []string{"min_tokens", "min_new_tokens"}, drop: func(c *Client) (string, bool) { return c.dropLengths("min_tokens", &c.caps.minTokens) }},
	{unnamed: true, drop: func(c *Client) (string, bool) {
		return c.dropLengths("ignore_eos and min_tokens", &c.caps.ignoreEOS, &c.caps.minTokens)
	}},
	{names: []string{"max_tokens", "max_completion_tokens"}, unnamed: true, drop: (*Client).swapLimit},
	{names: []string{"stream_options"}, unnamed: true, drop: (*Client).dropStreamOptions},
	{refused: noTokenIDs, unnamed: true, drop: (*Client).dropTokenIDs},
}

// concede drops what the server refused, or may have refused, and reports whether
// to try again. The note may be "".
func (c *Client) concede(o replay.Outcome) (note string, again bool) {
	// vLLM refuses some contents within a stream, after status 200, and gateways with
	// status 500.
	if o.Class != replay.Server && (o.Class != replay.HTTPError || o.Status < 400 || o.Status > 500) || c.notOfBody(o) {
		return "", false
	}
	text, named := strings.ToLower(o.Error), false
	for _, it := range concessions {
		if it.named(o.Status, text) {
			named = true
			if note, again = it.drop(c); again {
				return note, true
			}
		}
	}
	if named || o.Status != 400 && o.Status != 422 || c.extraNamed(text) {
		return "", false
	}
	for _, it := range concessions {
		if it.unnamed {
			if note, again = it.drop(c); again {
				return guessed.Replace(note), true
			}
		}
	}
	return "", false
}

// guessed changes the note of a concession that the endpoint did not name.
var guessed = strings.NewReplacer("refuses", "may refuse", "takes no", "may take no")

func (it *concession) named(status int, text string) bool {
	if it.refused != nil {
		return it.refused(status, text)
	}
	return slices.ContainsFunc(it.names, func(name string) bool { return strings.Contains(text, name) })
}

// notOfBody reports whether a refusal has another cause than the contents of the
// request: the model, or one for which the list of models was refused, too.
func (c *Client) notOfBody(o replay.Outcome) bool {
	return c.noSuchModel(o.Status, strings.ToLower(o.Error)) || c.refusedList(o)
}

// noSuchModel reports whether a refusal says that the model is unknown.
func (c *Client) noSuchModel(status int, text string) bool {
	says := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case !says("model") || says("chat model"):
		return false
	case status == 404:
		return true
	}
	return says("invalid model") || says("unknown model") || says("model_not_found") ||
		says(strings.ToLower(c.cfg.Model)) && (says("not exist") || says("not found") || says("no such"))
}

// refusedList reports whether a server refused the list of models in the same
// words. A missing path is no such case.
func (c *Client) refusedList(o replay.Outcome) bool {
	return c.listError != "" && o.Error == c.listError && o.Status != 404 && o.Status != 405
}

// extraNamed reports whether a refusal names a member of Config.ExtraBody or a
// sampling parameter, which the user asked for.
func (c *Client) extraNamed(text string) bool {
	named := func(m member) bool { return strings.Contains(text, strings.ToLower(m.key)) }
	return slices.ContainsFunc(c.extra, named) || slices.ContainsFunc(c.sampling, named)
}

// noSuchAPI reports whether a server has chat only. Others also use status 404 for
// unknown models.
func noSuchAPI(status int, text string) bool {
	if strings.Contains(text, "chat/completions") || strings.Contains(text, "chat model") {
		return true
	}
	return (status == 404 || status == 405) && !strings.Contains(text, "model")
}

// noTokenIDs reports whether a message asks for a prompt that is a string.
func noTokenIDs(_ int, text string) bool {
	return strings.Contains(text, "prompt") && (strings.Contains(text, "string") || strings.Contains(text, "text"))
}

// narrowTokens draws smaller token ids.
func (c *Client) narrowTokens() (note string, ok bool) {
	const quarter, fewest = 4, 400 // fewest is above prompt's smallest range, for any low
	low, high := c.cfg.Source.TokenRange()
	if c.cfg.Prompt != Tokens || c.fixed.tokenRange || high/quarter < fewest {
		return "", false
	}
	high /= quarter
	low = min(low, high/8)
	c.cfg.Source.Low, c.cfg.Source.High = low, high
	return fmt.Sprintf("the model's vocabulary has fewer than %d tokens: token ids are drawn from %d to %d", quarter*high, low, high-1), true
}

func (c *Client) dropCompletions() (note string, ok bool) {
	if c.cfg.Endpoint != Completions || c.fixed.endpoint || c.cfg.Prompt == Tokens && c.fixed.prompt {
		return "", false
	}
	c.cfg.Endpoint, c.cfg.Prompt = Chat, Words
	return "the endpoint has no completions API: prompts are sent as chats, to which it adds its template", true
}

func (c *Client) dropTokenIDs() (note string, ok bool) {
	if c.cfg.Prompt != Tokens || c.fixed.prompt {
		return "", false
	}
	c.cfg.Prompt = Words
	return "the endpoint takes no token ids: prompts are sent as words", true
}

func (c *Client) dropChunkTokens() (note string, ok bool) {
	ok = c.caps.chunkTokens != 0 && c.api.hasChoices()
	c.caps.chunkTokens = 0
	return "", ok
}

func (c *Client) dropStreamOptions() (note string, ok bool) {
	ok = c.caps.streamOptions && c.api.hasChoices()
	c.caps.streamOptions = false
	return "the endpoint refuses stream_options, with which it would be asked for usage", ok
}

// swapLimit changes between the two names of the limit, once.
func (c *Client) swapLimit() (note string, ok bool) {
	refused := c.caps.limit
	if !c.api.hasChoices() || refused == "" || refused != presetOf(c.asked.Server).caps.limit {
		return "", false
	}
	if c.caps.limit = maxTokens; refused == maxTokens {
		c.caps.limit = maxCompletionTokens
	}
	return fmt.Sprintf("the endpoint refuses %s: %s is sent", refused, c.caps.limit), true
}

// dropLengths drops members that make answers as long as asked for.
func (c *Client) dropLengths(names string, sent ...*bool) (note string, ok bool) {
	for _, is := range sent {
		ok = ok || *is
		*is = false
	}
	if c.caps.ignoreEOS || c.caps.minTokens {
		return fmt.Sprintf("the endpoint refuses %s, so it is not sent", names), ok
	}
	return fmt.Sprintf("the endpoint refuses %s: %s", names, lengthsLost), ok
}

// lengthsLost is what is lost without ignore_eos and min_tokens.
const lengthsLost = "answers may be shorter than in the trace, and the verdict reports their lengths but does not judge them"

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
	UseOtherAnswers Remedy = "answers"     // choose chat, or the answers of the trace
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
