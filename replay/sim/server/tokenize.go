package server

import (
	"fmt"
	"strings"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"

	"moontide/replay/sim/engine"
)

// serveTokenize answers like vLLM's /tokenize, with the token ids of a prompt
// or a chat. The ids result in the same prompt for the engine.
func (s *Server) serveTokenize(ctx *fasthttp.RequestCtx) *apiError {
	body := ctx.PostBody()
	defer ctx.Request.ReleaseBody(maxKeptBody)
	api := &completionAPI
	w, err := s.cfg.read(body, api)
	if err != nil {
		return err
	}
	if w.get("prompt").absent() && !w.get("messages").absent() {
		api = &chatAPI
	}
	list := tokenList{first: []uint64{}}
	if err := s.cfg.readPrompt(api, w, &list); err != nil {
		return err
	}
	if list.Len() > maxListed {
		return badRequest(api.promptParam, "the prompt has %[2]d tokens; at most %[1]d are listed", maxListed, list.Len())
	}
	listed, _ := sonic.ConfigStd.Marshal(list.first)
	return respond(ctx, jsonType, fmt.Appendf(nil, `{"count":%d,"max_model_len":%d,"tokens":%s,"token_strs":null}`,
		list.Len(), s.cfg.Deployment.Engine.MaxModelLen, listed))
}

// maxListed limits the list of tokens, which is much longer than the body.
const maxListed = 1 << 21

// tokenList counts the tokens of a prompt and keeps the first maxListed.
type tokenList struct {
	first []uint64
	n     int
}

// AddToken appends one token.
func (l *tokenList) AddToken(token uint64) {
	if l.n++; l.n <= maxListed {
		l.first = append(l.first, token)
	}
}

// AddText appends the words of s, as in an engine's prompt.
func (l *tokenList) AddText(s string) {
	for word := range strings.FieldsSeq(s) {
		l.AddToken(engine.WordToken(word))
	}
}

// Len returns the number of tokens.
func (l *tokenList) Len() int { return l.n }
