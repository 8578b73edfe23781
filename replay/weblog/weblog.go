// Package weblog is the log of the HTTP libraries: net/http, httputil and fasthttp.
//
//	weblog.Divert(say) // once, where the program starts
//	s := &http.Server{ErrorLog: weblog.Logger}
//
// Their messages quote what a peer sent: bytes after an answer, headers, values of
// panics. Only which kind of message it was is said, once for each kind. Most of net/http
// has no logger of its own and uses that of package log, which Divert replaces.
package weblog

import (
	"log"
	"strconv"
	"strings"
	"sync"
)

// Logger is for all that have a logger: ErrorLog of net/http and httputil, Logger of
// fasthttp. It is silent before Divert.
var Logger = log.New(writer{}, "", 0)

// HandlerPanic is a message for [Logger], as net/http has it.
const HandlerPanic = "http: panic serving"

// kinds are the messages that are known by their beginning. What they say is "" if it is
// reported to the client, or counted, anyway.
var kinds = []struct{ begins, says string }{
	{"Unsolicited response received", "a server sent bytes after its answer; its connection was closed"},
	{HandlerPanic, "a request handler panicked; its connection was closed"},
	{"http: Accept error", "a connection could not be accepted"},
	{"error when serving connection", ""},
	{"httputil: ReverseProxy read error", ""},
	{"http: TLS handshake error", ""},
}

const unknown = "an HTTP library reported a fault"

var (
	mu   sync.Mutex
	say  func(string)
	said map[string]bool
)

// Divert makes to take what Logger and package log's standard logger say.
func Divert(to func(text string)) {
	mu.Lock()
	say, said = to, map[string]bool{}
	mu.Unlock()
	log.SetFlags(0)
	log.SetOutput(writer{})
}

type writer struct{}

// Write takes a message. It never fails.
func (writer) Write(message []byte) (int, error) {
	text := unknown
	for _, k := range kinds {
		if strings.HasPrefix(string(message), k.begins) {
			text = k.says
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if text != "" && say != nil && !said[text] {
		said[text] = true
		say(text)
	}
	return len(message), nil
}

// Escape escapes control characters, except line breaks, in a text from a file or a peer,
// which could control the terminal.
func Escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}
