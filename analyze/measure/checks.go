package measure

import (
	"fmt"
	"slices"

	"moontide/replay"
	"moontide/replay/runfile"
)

// Check is a row of the table of checks. The verdict, its evidence and the page about it
// follow from the table.
type Check struct {
	Key    string // of the evidence, such as client_lag
	What   string // what the check looks for
	Remedy string
	// Setting is the threshold by its name in the setting of the verdict, "" if it is fixed.
	// Limits follow from the thresholds.
	Setting string
	Limits  func(t runfile.Thresholds) Limits

	share  func(r *Result) (n, all int) // of a check that counts: n of all are What
	always bool                         // also if n is 0
	text   func(r *Result) string       // instead of What
	detail func(r *Result) string       // after the remedy
	find   func(f *findings, r *Result) // of other checks
	inPart bool                         // also in each part by itself
	live   bool                         // not in virtual time
}

// Checks returns the table in the order of the evidence.
func Checks() []Check { return slices.Clone(checks) }

// The keys of checks for a cache with contents from before the run.
const (
	CachedCheck    = "cached"     // more tokens were cached than the trace explains
	WarmCacheCheck = "warm_cache" // requests hit what no request of the run can have cached
)

// Thresholds that cannot be set.
const (
	maxBadRecords   = 0.01   // lost, repeated or impossible records
	maxClientFailed = 0.01   // requests that the client could not send
	maxContradicted = 0.05   // answers whose stream contradicts the server's token count
	maxRateOff      = 0.05   // difference of the offered and the sent request rate
	maxUnstreamed   = 0.01   // long answers that arrived at one instant
	maxRetried      = 0.01   // requests that were retried
	slowConnect     = 1000.0 // ms at p99: the system sent its first packet again
)

// minStreamable is a number of tokens that no engine sends at once. A few at once are usual
// with speculative decoding or a server that collects tokens.
const minStreamable = 16

func maxFailed(t runfile.Thresholds) Limits     { return fifth(t.MaxFailed) }
func maxPromptsOff(t runfile.Thresholds) Limits { return fifth(t.MaxPromptsOff) }
func maxAnswersOff(t runfile.Thresholds) Limits { return fifth(t.MaxAnswersOff) }
func maxLag(t runfile.Thresholds) Limits        { return fifth(t.MaxLagMS) }

const (
	sameRecords  = "restore the file from a copy or run again"
	fasterClient = "use a larger client machine or fewer streams"
	coldCache    = "restart the server or change the salt"
	includeUsage = "the server does not report them; enable usage in streams (stream_options.include_usage)"
)

var checks = []Check{
	{Key: "parts", What: "folders that are not all parts of one run", Remedy: "see the message", find: (*findings).parts},
	{Key: "clocks", What: "error of the parts' clocks", Setting: "lag", Limits: maxLag,
		Remedy: "use a faster network between the parts, or synchronize their clocks", find: (*findings).clocks},
	{Key: "start", What: "time between a part's start and the agreed one", Setting: "lag", Limits: maxLag,
		Remedy: "the server did not get the load of the trace; run again", live: true, find: (*findings).start},
	{Key: "part", What: "evidence against a part by itself", Remedy: "see the check", find: (*findings).eachPart},
	{Key: "failed", What: "no request succeeded", Remedy: "look up the most common error", inPart: true, find: func(f *findings, r *Result) {
		if r.Completed == 0 {
			f.note(Invalid, "no request succeeded")
		}
	}},
	{Key: "records", What: "records cannot be read", Limits: anyOf(maxBadRecords), inPart: true,
		Remedy: "their requests are missing from all results; " + sameRecords,
		share:  func(r *Result) (n, all int) { return r.Unreadable, r.Records },
		detail: func(r *Result) string { return fmt.Sprintf("first error: %v", r.FirstUnreadable) }},
	{Key: "records", What: "sent requests have no record", Limits: anyOf(maxBadRecords), inPart: true,
		Remedy: "they are missing from all results: they were in flight when the run was killed, or the record was truncated; resume the run or run again",
		share:  func(r *Result) (n, all int) { return r.Missing, r.Sent }},
	{Key: "records", What: "records have contradictory times", Limits: anyOf(maxBadRecords), inPart: true,
		Remedy: "an answer cannot arrive before its request is sent; " + sameRecords,
		share:  func(r *Result) (n, all int) { return r.Impossible, r.Records }},
	{Key: "records", What: "records are duplicates or belong to another trace", Limits: anyOf(maxBadRecords), inPart: true,
		Remedy: "their requests are included in the results; " + sameRecords,
		share:  func(r *Result) (n, all int) { return r.Repeated, r.Records }},
	{Key: "failed", What: "requests failed", Setting: "failed", Limits: maxFailed, inPart: true,
		Remedy: "latencies cover only the other requests",
		share: func(r *Result) (n, all int) {
			return r.Failed - r.Errors[replay.ClientFault] - r.Errors[replay.Canceled], r.ended()
		},
		detail: func(r *Result) string { return "most common: " + r.commonFailure() }},
	{Key: "client_failed", What: "requests were not sent because of the client", Limits: anyOf(maxClientFailed), inPart: true,
		Remedy: "if connections failed, raise the open file limit or the local port range, or check the host name",
		share:  func(r *Result) (n, all int) { return r.Errors[replay.ClientFault], r.ended() },
		detail: func(r *Result) string { return "first error: " + r.Examples[replay.ClientFault] }},
	{Key: "failed_outside", What: "requests failed outside the measurement window", Setting: "failed", Limits: maxFailed, inPart: true,
		Remedy: "the window does not represent the run",
		share:  func(r *Result) (n, all int) { return r.FailedOutside, r.ended() + r.FailedOutside }},
	{Key: "skipped", What: "requests were not sent because an earlier turn of their session failed", Setting: "failed", Limits: maxFailed, inPart: true,
		Remedy: "the server did not get the load of the trace; find out why these turns failed",
		share:  func(r *Result) (n, all int) { return r.Skipped, r.ended() + r.Skipped }},
	{Key: "canceled", What: "requests were in flight when the run was stopped", Setting: "failed", Limits: suspectOnly(maxFailed), inPart: true,
		Remedy: "latencies cover only the faster ones", // a canceled request is no failure
		share:  func(r *Result) (n, all int) { return r.Errors[replay.Canceled], r.ended() }},
	{Key: "abandoned", What: "requests were abandoned by the client", Limits: func(runfile.Thresholds) Limits { return noLimits }, inPart: true,
		Remedy: "latencies cover only the others",
		share:  func(r *Result) (n, all int) { return r.Abandoned.Requests, r.ended() }},
	{Key: "client_lag", What: "client lag", Setting: "lag", Limits: maxLag, Remedy: fasterClient, inPart: true, find: (*findings).clientLag},
	{Key: "read_delay", What: "read delay of responses timestamped by the client", Setting: "lag", Limits: maxLag, Remedy: fasterClient, inPart: true, live: true, find: (*findings).readDelay},
	{Key: "first_stamp_error", What: "TTFT error from late reads", Setting: "lag", Limits: maxLag, Remedy: fasterClient, inPart: true, live: true, find: (*findings).firstStampError},
	{Key: "stamp_error", What: "timestamp error from late reads", Setting: "lag", Limits: maxLag, Remedy: fasterClient, inPart: true, live: true, find: (*findings).stampError},
	{Key: "client_cpu", What: "CPU of the client", inPart: true, find: func(f *findings, r *Result) {
		if c := &r.Samples.Client; c.Samples > 0 {
			f.note(Valid, "client used %.2f CPU cores, up to %.0f %% of the machine in 9 of 10 seconds", c.CPU, 100*c.MachineShare.Quantile(0.9))
		}
	}},
	{Key: "machine_cpu", What: "CPU of all processes", inPart: true, find: func(f *findings, r *Result) {
		if c := &r.Samples.Client; c.MachineBusy.Max > 0 {
			f.note(Valid, "CPU %.0f %% busy (all processes), %.0f %% in the busiest second", 100*c.MachineBusy.Mean, 100*c.MachineBusy.Max)
		}
	}},
	{Key: "client_pauses", What: "GC pauses and scheduling delays of the client", inPart: true, find: (*findings).clientPauses},
	{Key: "prompt_lengths", What: "prompts differ from the trace's ISL by more than 1 %", Setting: "prompts", Limits: maxPromptsOff, always: true, inPart: true,
		Remedy: "send token ids, or use the tokenizer of the served model",
		share:  func(r *Result) (n, all int) { return r.Lengths.PromptsOff, r.Lengths.Prompts },
		text:   func(r *Result) string { return r.Lengths.promptsOff() }},
	{Key: "prompt_lengths", What: "answers as text in prompts", inPart: true, find: func(f *findings, r *Result) {
		if l := r.Lengths; l.AsText > 0 {
			f.note(Valid, "%d prompts contain answers as text, which encodes to other tokens than were generated: %+d tokens in all (%s of the input)",
				l.AsText, l.TextTokens, percent(float64(l.TextTokens)/float64(max(r.Input, 1))))
		}
	}},
	{Key: "prompt_lengths", What: "prompt lengths are unverified", Setting: "prompts", Limits: suspectOnly(maxPromptsOff), Remedy: includeUsage, inPart: true,
		share: func(r *Result) (n, all int) {
			all = r.Completed - r.Lengths.Estimated
			return all - r.Lengths.Prompts, all
		}},
	{Key: "prompt_lengths", What: "prompt lengths that the trace estimates", inPart: true, find: func(f *findings, r *Result) {
		if n := r.Lengths.Estimated; n > 0 {
			f.note(Valid, "%d prompts not compared with the server's count, because their ISL is estimated in the trace", n)
		}
	}},
	{Key: "answer_lengths", What: "answer lengths are unverified", Setting: "responses", Limits: suspectOnly(maxAnswersOff), Remedy: includeUsage, inPart: true,
		share: func(r *Result) (n, all int) {
			if !r.Lengths.Enforced {
				return 0, 0
			}
			return r.Completed - r.Lengths.Answers, r.Completed
		}},
	{Key: "answer_lengths", What: "answers have the wrong length", Setting: "responses", Limits: maxAnswersOff, always: true, inPart: true,
		Remedy: "the server ignores ignore_eos, min_tokens or max_tokens, or its context is too short",
		share:  func(r *Result) (n, all int) { return r.Lengths.answersOff(r.Completed) },
		text: func(r *Result) string {
			if l := r.Lengths; !l.Enforced {
				return fmt.Sprintf("answers are longer than max_tokens, %d shorter", l.AnswersShorter)
			}
			return fmt.Sprintf("answers have the wrong length: %d shorter, %d longer", r.Lengths.AnswersShorter, r.Lengths.AnswersLonger)
		}},
	{Key: "token_counts", What: "answers have a token count that contradicts their stream", Limits: anyOf(maxContradicted), always: true, inPart: true,
		Remedy: "the server reports wrong usage, so their chunks are counted instead",
		share: func(r *Result) (n, all int) {
			if r.Lengths.Answers == 0 {
				return 0, 0
			}
			return r.Contradicted, r.Completed
		}},
	{Key: "streaming", What: fmt.Sprintf("answers of %d tokens or more arrived all at once", minStreamable), Limits: suspectFrom(maxUnstreamed), inPart: true, live: true,
		Remedy: "TTFT and ITL are not those of the server; look for a buffering proxy, or send fewer tokens at once",
		share:  func(r *Result) (n, all int) { return r.Unstreamed, r.Streamable }},
	{Key: CachedCheck, What: "more prompt tokens cached than the trace explains", Limits: suspectFrom(0), Remedy: "the cache was warm before the run; " + coldCache, find: (*findings).cached},
	{Key: "server_restart", What: "the server restarted during the run", Limits: suspectFrom(0), Remedy: "find out why and run again", find: func(f *findings, r *Result) {
		if n := r.Samples.Server.Restarts; n > 0 {
			f.crossed(Suspect, fmt.Sprintf("the server restarted during the run (%d times, by its metrics) and lost its cache", n), "")
		}
	}},
	{Key: WarmCacheCheck, What: "requests hit tokens that no request of the run can have cached", Limits: suspectFrom(0), Remedy: coldCache, find: (*findings).warmCache},
	{Key: "retries", What: "requests were retried after the server rejected them", Limits: suspectFrom(maxRetried), inPart: true,
		Remedy: "their latencies are those of the last attempt; compare latencies from schedule",
		share:  func(r *Result) (n, all int) { return r.Retried, r.QueueTime.Count }},
	{Key: "connect_time", What: "connect time", Limits: suspectFrom(slowConnect), inPart: true,
		Remedy: "the server or the network drops connections; latencies exclude connect time, so compare latencies from schedule",
		find:   (*findings).connectTime},
	{Key: "sent_rate", What: "difference of the sent rate from the offered one, if no request waited for a slot", Limits: func(runfile.Thresholds) Limits { return fifth(maxRateOff) }, inPart: true,
		Remedy: "the server did not get the load of the trace; use a larger client machine, or a server that accepts connections faster",
		find:   (*findings).sentRate},
}
