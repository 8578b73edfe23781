package format

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"moontide/trace/jsonscan"
	"moontide/trace/log"
)

// Format names a trace format.
type Format string

// The formats that can be read.
const (
	Mooncake Format = "mooncake"
	Azure    Format = "azure"
	BurstGPT Format = "burstgpt"
	Vidur    Format = "vidur"
	Bailian  Format = "bailian"
	Weka     Format = "weka"
	Dynamo   Format = "dynamo"
	AIPerf   Format = "aiperf"
	ShareGPT Format = "sharegpt"
	TraceLab Format = "tracelab"
	// OpenAILog is a log of requests and responses, with their texts: see package
	// log. It is read with Options.Record only.
	OpenAILog Format = "openai-log"
)

// Formats returns all formats, the native one first.
func Formats() []Format {
	return []Format{Mooncake, Azure, BurstGPT, Vidur, Bailian, Weka, Dynamo, AIPerf, ShareGPT, TraceLab, OpenAILog}
}

// ParseFormat returns the format with a name.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("format is not one of %s: %q", Formats(), name)
}

// Detect returns the format of a decompressed file from its first bytes; a few
// hundred are usually enough. Anything unknown is [Mooncake], whose reader then
// reports what is wrong.
func Detect(head []byte) Format { return cmp.Or(detect(head), Mooncake) }

// detect is Detect without the guess: anything unknown is "".
func detect(head []byte) Format {
	head = bytes.TrimLeft(head, " \t\r\n")
	first, inArray := bytes.CutPrefix(head, []byte("["))
	keys, page := headKeys(first)
	onPage, _ := headKeys(page)
	f := byKeys(keys)
	switch {
	case f == ShareGPT, f == Weka, f == OpenAILog, f != "" && f != Mooncake && !inArray:
		return f
	case inArray:
		return ""
	case log.IsLog(onPage):
		return OpenAILog
	case hasTexts(head):
		return AIPerf
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return cmp.Or(tableOf(line), f)
}

// hasTexts reports whether later rows have texts instead of lengths.
func hasTexts(head []byte) bool {
	if !bytes.HasPrefix(head, []byte("{")) || !slices.ContainsFunc(textKeys, func(key string) bool { return bytes.Contains(head, []byte(key)) }) {
		return false // most traces: this is much faster than reading the keys of all rows
	}
	for line := range bytes.Lines(head) {
		if keys, _ := headKeys(line); line[0] == '{' && byKeys(keys) == AIPerf {
			return true
		}
	}
	return false
}

// textKeys are the keys of AIPerf rows with a text.
var textKeys = []string{"text_input", "messages", "payload"}

// byKeys returns the format with these keys in its first object, or "".
func byKeys(keys map[string]bool) Format {
	switch {
	case keys["moontide_model"]: // a model file, not a trace
		return ""
	case keys["event"], keys["schema"] && keys["event_type"]:
		return Dynamo
	case keys["chat_id"] && keys["parent_chat_id"]:
		return Bailian
	case keys["session_id"] && keys["input_tokens_total"]:
		return TraceLab
	case keys["requests"] && (keys["block_size"] || keys["hash_id_scope"] || keys["id"]):
		return Weka
	case keys["conversations"], keys["conversation"]:
		return ShareGPT
	case keys["input_length"], keys["input_tokens"]:
		if keys["chat_id"] || keys["parent_chat_id"] { // half a row of Bailian
			return ""
		}
		return Mooncake
	case log.IsLog(keys):
		return OpenAILog
	case slices.ContainsFunc(textKeys, func(key string) bool { return keys[key] }):
		return AIPerf
	}
	return ""
}

// maxHeadKeys bounds the keys by which a format is detected.
const maxHeadKeys = 256

// headKeys returns the first keys of the object that b starts with, and the first element of
// its array "data", if it is a page of an API. b may be cut off anywhere.
func headKeys(b []byte) (keys map[string]bool, page []byte) {
	keys = map[string]bool{}
	c := jsonscan.New(b)
	for more := c.Open('{'); more && len(keys) < maxHeadKeys; more = c.More('}') {
		key := string(c.Key())
		if c.Failed() {
			break
		}
		keys[key] = true
		if elements, isArray := bytes.CutPrefix(c.Raw(), []byte("[")); isArray && key == "data" {
			page = elements
		}
	}
	return keys, page
}

// names are those of formats in messages that are not like "a Weka trace".
var names = map[Format]string{
	Azure: "an Azure trace", BurstGPT: "a BurstGPT trace", AIPerf: "an AIPerf trace",
	ShareGPT: "a ShareGPT file", TraceLab: "a TraceLab trace", OpenAILog: "a request log",
}

// named returns the name of the format in messages.
func named(f Format) string {
	return cmp.Or(names[f], fmt.Sprintf("a %s%s trace", strings.ToUpper(string(f[:1])), f[1:]))
}
