//go:build unix

package main

import (
	"fmt"
	"strings"
)

// behaviours are the rows of the table, from sound servers to none.
func behaviours() []behaviour {
	var all []behaviour
	for _, some := range [][]behaviour{soundServers(), otherCounts(), otherAnswers(), brokenStreams(), otherResponses(), noServer(), nearLimits()} {
		all = append(all, some...)
	}
	return all
}

func soundServers() []behaviour {
	return []behaviour{
		{name: "sound server", verdict: "VALID"},
		{name: "answers only after all requests have arrived", verdict: "VALID", together: true},
		{name: "3 tokens in each chunk, usage at the end", verdict: "VALID", osl: 15, script: func(a *style, _ question) { a.first, a.per = 3, 3 }},
		{name: "3 tokens in each chunk, usage with every chunk", verdict: "VALID", osl: 15, script: func(a *style, _ question) { a.first, a.per = 3, 3 },
			always: func(a *style, q question) { a.inEach = q.inEach }},
		{name: "first chunk of 5 tokens, then 1 each, usage with every chunk", verdict: "VALID", osl: 15, script: func(a *style, _ question) { a.first = 5 },
			always: func(a *style, q question) { a.inEach = q.inEach }},
		{name: "first chunk of 5 tokens, then 1 each, token ids with every chunk", verdict: "VALID", osl: 15, script: func(a *style, _ question) { a.first = 5 },
			always: func(a *style, q question) { a.ids = q.ids }},
		{name: "usage with every chunk although not asked for", verdict: "VALID", always: func(a *style, _ question) { a.inEach = true }},
		{name: "usage of the whole answer with every chunk", verdict: "VALID", always: func(a *style, q question) {
			a.inEach, a.usage = true, func(isl, _ int) string { return usageOf(isl, q.max) }
		}},
		{name: "token ids with every chunk although not asked for", verdict: "VALID", always: func(a *style, _ question) { a.ids = true }},
		{name: "chat: role-only chunk first", verdict: "VALID", args: chat, always: func(a *style, _ question) { a.role = true }},
		{name: "chat: reasoning text", verdict: "VALID", args: chat, always: func(a *style, _ question) { a.member = "reasoning_content" }},
		{name: "chat: reasoning text, then an answer", verdict: "VALID", args: chat, always: func(a *style, _ question) { a.reasoning = 2 }},
		{name: "chat: tool calls", verdict: "VALID", args: chat, always: func(a *style, _ question) { a.member, a.finish = "tool_calls", "tool_calls" }},
		{name: "chat template adds 12 tokens to every prompt", verdict: "VALID", args: chat, always: inputCount(func(isl int) int { return isl + 12 })},
		{name: "usage as floats", verdict: "VALID", always: func(a *style, _ question) {
			a.usage = func(isl, tokens int) string {
				return usageJSON(fmt.Sprintf("%d.0", isl), fmt.Sprintf("%de0", tokens), "0.0")
			}
		}},
		{name: "smaller usage after the final one", verdict: "VALID", script: func(a *style, _ question) { a.last = `{"choices":[],"usage":` + usageOf(0, 0) + `}` }},
		{name: "keep-alive comments and empty events", verdict: "VALID", script: func(a *style, _ question) { a.insert = "\n\n: keep-alive\n\nevent: ping\ndata:" }},
		{name: "byte order mark before the stream", verdict: "VALID", script: func(a *style, _ question) {
			a.frame = func(body string) (string, string) { return chunked("\ufeff" + body) }
		}},
		{name: "HTTP chunks of one byte", verdict: "VALID", script: func(a *style, _ question) { a.frame = bytewise }},
		{name: "Content-Length instead of chunks of HTTP", verdict: "VALID", script: func(a *style, _ question) {
			a.frame = func(body string) (string, string) { return body, fmt.Sprintf("Content-Length: %d\r\n", len(body)) }
		}},
		{name: "body ends with the connection", verdict: "VALID", script: func(a *style, _ question) { a.frame, a.end = unframed, hangUp }},
		{name: "HTTP/1.0", verdict: "VALID", script: func(a *style, _ question) {
			a.head, a.frame, a.end = strings.Replace(streamHead, "1.1", "1.0", 1), unframed, hangUp
		}},
		{name: "connection closed after every answer", verdict: "VALID", script: func(a *style, _ question) { a.end = hangUp }},
		{name: "100 Continue and 103 Early Hints before every answer", verdict: "VALID", script: func(a *style, _ question) {
			a.before = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
		}},
		{name: "answers end early without ignore_eos", verdict: "VALID", args: []string{"--no-ignore-eos"}, script: func(a *style, _ question) { a.tokens, a.finish = 2, "stop" }},
		{name: "last tokens of an answer have no text", verdict: "VALID", script: func(a *style, _ question) {
			a.tokens, a.usage = 2, func(isl, _ int) string { return usageOf(isl, 5) }
		}},
	}
}

var chat = []string{"--endpoint", "chat"}

// inputCount counts prompts of n tokens as of f(n).
func inputCount(f func(n int) int) func(*style, question) {
	return func(a *style, _ question) {
		a.usage = func(isl, tokens int) string { return usageOf(f(isl), tokens) }
	}
}

// outputCount counts answers of n tokens as text.
func outputCount(text func(n int) string) func(*style, question) {
	return func(a *style, _ question) {
		a.usage = func(isl, tokens int) string { return usageJSON(fmt.Sprint(isl), text(tokens), "0") }
	}
}

func constant(text string) func(int) string { return func(int) string { return text } }

func unframed(body string) (framed, header string) { return body, "" }

func bytewise(body string) (framed, header string) {
	var b strings.Builder
	for i := range len(body) {
		fmt.Fprintf(&b, "1\r\n%c\r\n", body[i])
	}
	return b.String() + "0\r\n\r\n", "Transfer-Encoding: chunked\r\n"
}

// otherCounts are servers whose usage is wrong or missing.
func otherCounts() []behaviour {
	none := func(a *style, _ question) { a.usage = func(int, int) string { return "" } }
	return []behaviour{
		{name: "no usage", verdict: "SUSPECT prompt_lengths, answer_lengths", always: none},
		{name: "no usage in half of the answers", verdict: "SUSPECT prompt_lengths, answer_lengths", script: none, bad: 20},
		{name: "usage without completion_tokens", verdict: "SUSPECT answer_lengths", script: func(a *style, _ question) {
			a.usage = func(isl, _ int) string { return fmt.Sprintf(`{"prompt_tokens":%d}`, isl) }
		}},
		{name: "completion_tokens 5000 for max_tokens 5", verdict: "INVALID answer_lengths, token_counts", script: outputCount(constant("5000"))},
		{name: "completion_tokens 0 with 5 chunks", verdict: "INVALID token_counts", script: outputCount(constant("0"))},
		{name: "completion_tokens 2 with 5 chunks", verdict: "INVALID token_counts", script: outputCount(constant("2"))},
		{name: "completion_tokens of 2^62", verdict: "INVALID answer_lengths, token_counts", script: outputCount(constant("4611686018427387904"))},
		{name: "completion_tokens of 1e308", verdict: "INVALID answer_lengths, token_counts", script: outputCount(constant("1e308"))},
		{name: "completion_tokens of -5", verdict: "SUSPECT answer_lengths", script: outputCount(constant("-5"))},
		{name: "completion_tokens null", verdict: "SUSPECT answer_lengths", script: outputCount(constant("null"))},
		{name: "completion_tokens is a string", verdict: "INVALID failed", script: outputCount(constant(`"5"`))},
		{name: "completion_tokens one above max_tokens", verdict: "INVALID answer_lengths, token_counts", script: outputCount(constant("6"))},
		{name: "prompt_tokens of 2^62", verdict: "INVALID prompt_lengths", script: inputCount(func(int) int { return 1 << 62 })},
		{name: "prompt_tokens 2 % too many", verdict: "INVALID prompt_lengths", script: inputCount(func(n int) int { return n + 3 })},
		{name: "prompt_tokens 0", verdict: "INVALID prompt_lengths", script: inputCount(func(n int) int { return 0 })},
		{name: "1.3 prompt tokens counted for each token", verdict: "INVALID prompt_lengths", always: inputCount(func(n int) int { return n * 13 / 10 })},
		{name: "prompts cut to 100 tokens", verdict: "INVALID prompt_lengths", always: inputCount(func(n int) int { return min(n, 100) })},
		{name: "usage with every chunk jumps from 5000 to 5", verdict: "INVALID answer_lengths, token_counts", script: func(a *style, q question) { a.insert = `{"choices":[],"usage":` + usageOf(q.isl, 5000) + `}` }},
		{name: "warm cache: all but one token of each prompt cached", verdict: "SUSPECT cached, warm_cache", script: cachedTokens(func(isl int) int { return isl - 1 })},
		{name: "more tokens cached than the prompt has", verdict: "SUSPECT cached, warm_cache", script: cachedTokens(func(isl int) int { return 2 * isl })},
	}
}

func cachedTokens(f func(isl int) int) func(*style, question) {
	return func(a *style, _ question) {
		a.usage = func(isl, tokens int) string {
			return usageJSON(fmt.Sprint(isl), fmt.Sprint(tokens), fmt.Sprint(f(isl)))
		}
	}
}

// otherAnswers are complete answers that are not what was asked for.
func otherAnswers() []behaviour {
	return []behaviour{
		{name: "1 token of 500 with ignore_eos", verdict: "INVALID answer_lengths", osl: 500, script: func(a *style, _ question) { a.tokens, a.finish = 1, "stop" }},
		{name: "4 tokens of 5 with ignore_eos", verdict: "INVALID answer_lengths", script: func(a *style, _ question) { a.tokens = 4 }},
		{name: "1 token of 500 without usage", verdict: "SUSPECT prompt_lengths, answer_lengths", osl: 500, script: func(a *style, _ question) {
			a.tokens, a.usage = 1, func(int, int) string { return "" }
		}},
		{name: "10 tokens for max_tokens 5", verdict: "INVALID answer_lengths, token_counts", script: func(a *style, _ question) { a.tokens = 10 }},
		{name: "10 tokens for max_tokens 5 without ignore_eos", verdict: "INVALID answer_lengths, token_counts", args: []string{"--no-ignore-eos"}, script: func(a *style, _ question) { a.tokens = 10 }},
		{name: "10 chunks for max_tokens 5 without usage", verdict: "INVALID prompt_lengths, answer_lengths", script: func(a *style, _ question) {
			a.tokens, a.usage = 10, func(int, int) string { return "" }
		}},
		{name: "gateway divides 5 tokens into 12 chunks", verdict: "INVALID answer_lengths, token_counts", script: func(a *style, _ question) {
			a.tokens, a.usage = 12, func(isl, _ int) string { return usageOf(isl, 5) }
		}},
		{name: "whole answer of 30 tokens in one chunk", verdict: "SUSPECT streaming", osl: 30, script: func(a *style, _ question) { a.first = 30 }},
		{name: "proxy collects answers of 30 tokens", verdict: "SUSPECT streaming", osl: 30},
		{name: "gateway divides one token in two", verdict: "VALID", script: func(a *style, _ question) {
			a.tokens, a.usage = 6, func(isl, _ int) string { return usageOf(isl, 5) }
		}},
		{name: "empty answers", verdict: "INVALID failed", script: func(a *style, _ question) { a.tokens = -1 }},
		{name: "empty answers, usage of 5 tokens", verdict: "INVALID failed", script: func(a *style, _ question) {
			a.tokens, a.usage = -1, func(isl, _ int) string { return usageOf(isl, 5) }
		}},
		{name: "finish reason abort", verdict: "INVALID failed", script: func(a *style, _ question) { a.finish = "abort" }},
		{name: "finish reason error", verdict: "INVALID failed", script: func(a *style, _ question) { a.finish = "error" }},
		{name: "finish reason content_filter after 2 tokens", verdict: "INVALID answer_lengths", script: func(a *style, _ question) { a.tokens, a.finish = 2, "content_filter" }},
		{name: "error event after the first chunk", verdict: "INVALID failed", script: func(a *style, _ question) { a.insert = `{"error":{"message":"out of memory","code":500}}` }},
		{name: "error event of SSE", verdict: "INVALID failed", script: func(a *style, _ question) { a.insert = "{}\n\nevent: error\ndata: {\"message\":\"overloaded\"}" }},
		{name: "event that is not JSON", verdict: "INVALID failed", script: func(a *style, _ question) { a.insert = `{"choices":[` }},
		{name: "event is HTML", verdict: "INVALID failed", script: func(a *style, _ question) { a.insert = "<html>504 Gateway Time-out</html>" }},
		{name: "event of another API", verdict: "SUSPECT prompt_lengths, answer_lengths", script: func(a *style, _ question) {
			a.body = func([]string) []string {
				return []string{`{"type":"content_block_delta","delta":{"text":"hi"}}`, "[DONE]"}
			}
		}},
	}
}

// brokenStreams end before their end.
func brokenStreams() []behaviour {
	cut := func(a *style, _ question) {
		a.body = func(events []string) []string { return events[:3] }
	}
	return []behaviour{
		{name: "stream ends after 3 chunks", verdict: "INVALID failed", script: cut},
		{name: "stream ends without finish reason and [DONE]", verdict: "INVALID failed", script: func(a *style, _ question) { a.noFinish, a.noDone = true, true }},
		{name: "no [DONE], but finish reason and usage", verdict: "VALID", script: func(a *style, _ question) { a.noDone, a.frame, a.end = true, unframed, hangUp }},
		{name: "no [DONE], but finish reason, usage and the end of the chunks", verdict: "VALID", script: func(a *style, _ question) { a.noDone = true }},
		{name: "no finish reason, but [DONE]", verdict: "VALID", script: func(a *style, _ question) { a.noFinish = true }},
		{name: "[DONE] after 2 tokens", verdict: "SUSPECT prompt_lengths, answer_lengths", script: func(a *style, _ question) {
			a.body = func(events []string) []string { return append(events[:2:2], "[DONE]") }
		}},
		{name: "reset in the middle of the stream", verdict: "INVALID failed", script: func(a *style, q question) { cut(a, q); a.frame, a.end = unfinished, reset }},
		{name: "hung up in the middle of the stream", verdict: "INVALID failed", script: func(a *style, q question) { cut(a, q); a.frame, a.end = unfinished, hangUp }},
		{name: "stall after 3 chunks, until the timeout", verdict: "INVALID failed", args: []string{"--timeout", "1s"}, script: func(a *style, q question) { cut(a, q); a.frame, a.end = unfinished, stall }},
		{name: "stall after 3 chunks, until the idle timeout", verdict: "INVALID failed", args: []string{"--timeout", "20s,20s,500ms"}, script: func(a *style, q question) { cut(a, q); a.frame, a.end = unfinished, stall }},
		{name: "no answer until the timeout", verdict: "INVALID failed", args: []string{"--timeout", "1s"}, script: func(a *style, _ question) { a.raw, a.end = " ", stall }},
		{name: "size of an HTTP chunk is not a number", verdict: "INVALID failed", script: func(a *style, _ question) {
			a.frame, a.end = func(body string) (string, string) { return "zz\r\n" + body, "Transfer-Encoding: chunked\r\n" }, hangUp
		}},
		{name: "Content-Length is larger than the body", verdict: "VALID", script: func(a *style, _ question) {
			a.frame, a.end = func(body string) (string, string) { return body, fmt.Sprintf("Content-Length: %d\r\n", 2*len(body)) }, hangUp
		}},
		{name: "Content-Length cuts the body", verdict: "INVALID failed", script: func(a *style, _ question) {
			a.frame, a.end = func(body string) (string, string) { return body, fmt.Sprintf("Content-Length: %d\r\n", len(body)/2) }, hangUp
		}},
	}
}

// unfinished frames a body as one chunk of HTTP without the last one.
func unfinished(body string) (framed, header string) {
	framed, header = chunked(body)
	return strings.TrimSuffix(framed, "0\r\n\r\n"), header
}

// otherResponses are no streams of events.
func otherResponses() []behaviour {
	status := func(head string) func(*style, question) {
		return func(a *style, _ question) { a.raw = plain(head, `{"error":{"message":"no"}}`) }
	}
	return []behaviour{
		{name: "59 of 60 answered with HTTP 500", verdict: "INVALID failed", rows: 60, bad: 59, script: status("500 Internal Server Error")},
		{name: "HTTP 500 for all", verdict: "INVALID failed", script: status("500 Internal Server Error")},
		{name: "HTTP 502 in chunks", verdict: "INVALID failed", script: func(a *style, _ question) { a.head = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n" }},
		{name: "HTTP 429 with Retry-After", verdict: "INVALID failed", script: status("429 Too Many Requests\r\nRetry-After: 1")},
		// In any order of arrival, no request runs out of its 3 retries.
		{name: "HTTP 503 with Retry-After, retried", verdict: "SUSPECT retries", bad: 3, args: []string{"--retry", "3"}, script: status("503 Service Unavailable\r\nRetry-After: 0")},
		{name: "HTTP 401", verdict: "INVALID failed", script: status("401 Unauthorized")},
		{name: "HTTP 301 to another place", verdict: "INVALID failed", script: status("301 Moved Permanently\r\nLocation: /v2")},
		{name: "HTTP 308 to another place", verdict: "INVALID failed", script: status("308 Permanent Redirect\r\nLocation: /v2")},
		{name: "HTTP 204", verdict: "INVALID failed", script: func(a *style, _ question) { a.raw = "HTTP/1.1 204 No Content\r\n\r\n" }},
		{name: "JSON instead of a stream", verdict: "INVALID failed", script: status("200 OK")},
		{name: "content type text/html", verdict: "INVALID failed", script: func(a *style, _ question) { a.head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" }},
		{name: "no content type", verdict: "INVALID failed", script: func(a *style, _ question) { a.head = "HTTP/1.1 200 OK\r\n" }},
		{name: "gzip", verdict: "INVALID failed", script: func(a *style, _ question) { a.head = streamHead + "Content-Encoding: gzip\r\n" }},
		{name: "not HTTP", verdict: "INVALID failed", script: func(a *style, _ question) { a.raw, a.end = "SSH-2.0-OpenSSH_9.6\r\n", hangUp }},
		{name: "nothing at all", verdict: "INVALID failed", script: func(a *style, _ question) { a.raw, a.end = "\r\n", hangUp }},
		{name: "head of the answer is cut", verdict: "INVALID failed", script: func(a *style, _ question) { a.raw, a.end = "HTTP/1.1 200 OK\r\nContent-Ty", hangUp }},
		{name: "two answers to each request", verdict: "VALID", script: func(a *style, q question) {
			sound := style{first: 1, per: 1, finish: "length", usage: usageOf}
			a.raw = sound.response(q) + sound.response(q)
		}},
	}
}

// plain is a response that is no stream.
func plain(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// noServer are servers that are away, and machines that do not reach them.
func noServer() []behaviour {
	return []behaviour{
		{name: "server killed halfway", verdict: "INVALID failed", args: []string{"--max-concurrency", "1"}, script: func(a *style, q question) {
			if q.number >= 20 {
				a.raw, a.end = " ", die
			}
		}},
		{name: "port refused", url: "http://127.0.0.1:1"},
		{name: "host name unknown", url: "http://nowhere.invalid:8000"},
		{name: "probe refused with HTTP 500", always: func(a *style, _ question) { a.raw = plain("500 Internal Server Error", "{}") }},
		{name: "limit of 64 open files, 200 requests in flight", verdict: "INVALID failed, client_failed, sent_rate", busy: "INVALID failed, client_failed", rows: 200, files: 64, args: []string{"--timeout", "2s"}, counts: "10 | client, timeout",
			script: func(a *style, q question) {
				if q.number >= 10 {
					a.raw, a.end = " ", stall
				}
			}},
	}
}

// nearLimits are just below and above each limit.
func nearLimits() []behaviour {
	failed := func(a *style, _ question) { a.raw = plain("500 Internal Server Error", "{}") }
	var all []behaviour
	// Of rows, valid and one more are just below and above the first limit, and of 200,
	// suspect and one more are beside the second.
	add := func(what, check string, script func(*style, question), valid, rows, suspect int) {
		for _, n := range []struct {
			bad, rows int
			verdict   string
		}{{valid, rows, "VALID"}, {valid + 1, rows, "SUSPECT " + check}, {suspect, 200, "SUSPECT " + check}, {suspect + 1, 200, "INVALID " + check}} {
			if n.bad > 0 {
				all = append(all, behaviour{name: fmt.Sprintf("%d of %d %s", n.bad, n.rows, what), verdict: n.verdict, rows: n.rows, bad: n.bad, script: script})
			}
		}
	}
	add("requests fail", "failed", failed, 1, 200, 10)
	add("prompts are counted 2 % too long", "prompt_lengths", inputCount(func(n int) int { return n + 3 }), 1, 1000, 2)
	add("answers are too short", "answer_lengths", func(a *style, _ question) { a.tokens = 4 }, 1, 1000, 2)
	add("answers have a usage of 0", "token_counts", outputCount(constant("0")), 0, 200, 10)
	return all
}
