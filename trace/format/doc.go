// Package format opens traces of any published format and writes native ones.
//
// [Open] detects the format from content and returns a [Reader] of
// [trace.Request] values; [Create] writes a trace.
//
//	r, err := format.Open("AzureLLMInferenceTrace_conv.csv", format.Options{})
//	if err != nil { ... }
//	defer r.Close()
//	for req, err := range r.Requests() {
//		if err != nil { ... } // file:line: what is wrong, with the value
//	}
//	for _, note := range r.Notes() { ... } // data that was dropped or assumed
//
// # Formats
//
//	mooncake   JSON lines: the native format, times in milliseconds
//	azure      CSV of 2023, 2024 and 2025: a date and two lengths
//	burstgpt   CSV, old and new: seconds, failed requests, sessions
//	vidur      CSV: seconds and two lengths
//	bailian    JSON lines: seconds, hashes of single blocks, chats
//	weka       JSON files or a folder of them: agents' conversations
//	dynamo     JSON lines or a folder of them: events of a running server
//	aiperf     the native format, with texts instead of lengths
//	sharegpt   a JSON array of conversations, without times
//	tracelab   JSON lines: rounds of coding agents, dates
//	openai-log requests and responses as gateways and SDKs log them, see package log
//
// Files may be compressed with gzip or zstd, which is detected from content.
//
// # Conversion
//
// Times are milliseconds. If a format has dates, 0 is the first arrival;
// otherwise its own clock is kept. A later turn of a session that is known to
// have waited for the previous turn (in weka, dynamo and tracelab) has the pause as its
// delay and no timestamp; [Options.RecordedTimes] keeps recorded
// times instead.
//
// Block ids identify whole prefixes, as everywhere in moontide: hashes of single
// blocks are chained, and ids that are unique only within a conversation are
// moved to a separate range.
//
// What a format lacks is absent in the result: times, block ids, sessions. A
// row with lengths estimated from a text lists them in the unknown key
// "estimated". A row without an output length has the length 0 and the unknown
// key "missing". Everything else in the source is kept, with its own names and
// units, in the unknown key "recorded".
//
// # Memory
//
// A Reader holds one row, of up to 64 MiB. Bailian and ShareGPT need another 40
// bytes a chat or conversation. Weka, Dynamo, TraceLab and request logs, which are not in
// order of arrival, need about 100 bytes a request, and their rows are put aside in a temporary
// file. Weka needs one conversation of up to 256 MiB, and TraceLab the block ids of the
// latest prompt of each session.
package format
