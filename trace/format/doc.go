// Package foreign reads the traces that others publish as moontide's own:
// whatever the file is, a [Reader] yields [trace.Request] values.
//
//	r, err := foreign.Open("AzureLLMInferenceTrace_conv.csv", foreign.Options{})
//	if err != nil { ... }
//	defer r.Close()
//	for req, err := range r.Requests() {
//		if err != nil { ... } // file:line: what is wrong, with the value
//	}
//	for _, note := range r.Notes() { ... } // what was left out, and what assumed
//
// # Formats
//
// The format is recognized by content; [Options.Format] overrides.
//
//	mooncake   JSON lines; the native format, in milliseconds
//	azure      CSV of 2023, 2024 and 2025: a date and two lengths
//	burstgpt   CSV, old and new: seconds, failed requests, sessions
//	vidur      CSV: seconds and two lengths
//	bailian    JSON lines: seconds, hashes of single blocks, chats
//	weka       JSON, or a folder of it: a conversation of an agent each
//	dynamo     JSON lines, or a folder of them: events of a running server
//	aiperf     the native format with texts instead of lengths
//	sharegpt   a JSON array of conversations: texts alone
//
// # What is held
//
// A row at a time, but for these: bailian some 40 bytes a chat, and sharegpt as
// much a conversation, to know it again; weka and dynamo, whose requests stand in
// no order of arrival, some 100 bytes a request, and weka a conversation of up to
// 256 MiB as it is read. A row has up to 64 MiB, and so does a conversation of
// sharegpt. What of weka and dynamo is compressed or no file is kept in a
// temporary file of up to 4 GiB.
//
// # What becomes of it
//
// Times are milliseconds. Where a format has dates, 0 is the first arrival;
// where it has a clock of its own, that clock is kept. A later turn of a
// session that is known to have waited for the turn before has the pause
// between them as its delay and no timestamp; [Options.RecordedTimes] gives
// both formats that know (weka, dynamo) their recorded times instead.
//
// Block ids stand for whole prefixes, as everywhere in moontide: hashes of
// single blocks are chained, and ids that mean something in one conversation
// alone are moved apart.
//
// What a format does not say is absent in the result: no times, no block ids, no
// session. A row whose lengths are estimated from a text has the unknown key
// "estimated" with their names, one that cannot have an output length has
// "missing" and the length 0. What the source says beyond what a trace has is
// kept, in the source's own names and units, in the unknown key "recorded".
package format
