package server

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"moontide/replay/sim/engine"
)

// serveTokenize answers as vLLM's /tokenize does: the token ids of a prompt or
// of a chat. The same ids are the same prompt to the engine.
func (s *Server) serveTokenize(ctx *fasthttp.RequestCtx) *apiError {
	body := ctx.PostBody()
	defer ctx.Request.ReleaseBody(maxKeptBody)
	w, err := s.cfg.read(body)
	if err != nil {
		return err
	}
	api := &completionAPI
	if absent(w.Prompt) && !absent(w.Messages) {
		api = &chatAPI
	}
	var list tokenList
	if err := api.readPrompt(w, &list); err != nil {
		return err
	}
	if list.Len() > mostListed {
		return badRequest(api.promptParam, "more than %d tokens are not listed: there are %d", mostListed, list.Len())
	}
	b := append([]byte(nil), `{"count":`...)
	b = strconv.AppendInt(b, int64(list.Len()), 10)
	b = append(b, `,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(s.cfg.Deployment.Engine.MaxModelLen), 10)
	b = append(b, `,"tokens":[`...)
	for i, token := range list.first {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, token, 10)
	}
	ctx.SetContentType(jsonType)
	ctx.SetBody(append(b, `],"token_strs":null}`...))
	return nil
}

// mostListed is how many tokens are listed: a body is of tens of megabytes, and
// the list of its tokens is many times as long.
const mostListed = 1 << 21

// tokenList counts the tokens of a prompt and keeps the first ones.
type tokenList struct {
	first []uint64
	n     int
}

// AddToken appends one token.
func (l *tokenList) AddToken(token uint64) {
	if l.n++; l.n <= mostListed {
		l.first = append(l.first, token)
	}
}

// AddText appends the words of s, as an engine's prompt does.
func (l *tokenList) AddText(s string) {
	for word := range strings.FieldsSeq(s) {
		l.AddToken(engine.WordToken(word))
	}
}

// Len is the number of tokens.
func (l *tokenList) Len() int { return l.n }
