package check_test

import (
	"slices"
	"testing"

	"moontide/trace"
	"moontide/trace/check"
)

var never trace.Opt[float64]

// spoiled is a trace with one defect, which must be the only finding.
type spoiled struct {
	name  string
	opts  check.Options
	keep  int // first rows, or 0 for all
	spoil func([]trace.Request)
	wants []want
}

func testSpoiled(t *testing.T, from func() []trace.Request, tests []spoiled) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			all := from()
			test.spoil(all)
			if test.keep > 0 {
				all = all[:test.keep]
			}
			report := run(t, all, test.opts)
			compare(t, report, test.wants...)
			replayable := true
			for _, w := range test.wants {
				replayable = replayable && w.severity != check.Error
			}
			if report.Replayable() != replayable {
				t.Errorf("replayable: %v", report.Replayable())
			}
		})
	}
}

func TestTimes(t *testing.T) {
	at := trace.Some[float64]
	testSpoiled(t, clean, []spoiled{
		{name: "time going backwards", spoil: func(all []trace.Request) {
			all[6].Timestamp, all[7].Timestamp = all[7].Timestamp, all[6].Timestamp
			all[12].Timestamp = at(5.25)
		}, wants: []want{{check.TimeBackwards, check.Error, 2, "", []place{
			{8, "timestamp 3954 after 4293 on line 7"}, {13, "timestamp 5.25 after 6731 on line 12"}}}}},
		{name: "neither timestamp nor delay", spoil: func(all []trace.Request) { all[4].Timestamp = never }, wants: []want{{check.NoTime, check.Error, 1, "", []place{{5, "no timestamp, no delay"}}}}},
		{name: "no timestamps at all", spoil: func(all []trace.Request) {
			for i := range all {
				all[i].Timestamp = never
			}
			all[29].Delay = never
		}, wants: []want{{check.NoTimestamps, check.Error, 30, "none of 30 rows", nil}}},
		{name: "one burst", spoil: func(all []trace.Request) {
			for i := range all[:29] {
				all[i].Timestamp = at(0)
			}
		}, wants: []want{{check.TimeBursts, check.Warning, 29, "all 29 timestamps are 0", nil}}},
		{name: "two bursts", spoil: func(all []trace.Request) {
			for i := range all[:29] {
				all[i].Timestamp = at(float64(i / 15))
			}
		}, wants: []want{{check.TimeBursts, check.Warning, 29, "29 rows have 2 distinct timestamps", nil}}},
		{name: "few at once", keep: 9, spoil: func(all []trace.Request) {
			for i := range all[:9] {
				all[i].Timestamp = at(0)
			}
		}},
		{name: "a time that is none", spoil: func(all []trace.Request) { all[28].Timestamp = at(1e15) }, wants: []want{{check.LongSpan, check.Warning, 29, "timestamps go from 0 to 1000000000000000 ms: 31688.1 years", nil}}},
		{name: "Unix time among others", keep: 2, opts: check.Options{BlockSize: blockSize}, spoil: func(all []trace.Request) {
			all[1].Timestamp = at(1_700_000_000_123)
		}, wants: []want{{check.LongSpan, check.Warning, 2, "timestamps go from 0 to 1700000000123 ms: 53.9 years", nil}}},
		{name: "a year", spoil: func(all []trace.Request) {
			all[28].Timestamp = at(366 * 24 * 3600e3)
		}},
		{name: "session that never began", spoil: func(all []trace.Request) { all[9].SessionID = "other" }, wants: []want{{check.SessionNotBegun, check.Error, 1, "", []place{{30, `session_id "talk", no timestamp`}}}}},
		{name: "turn without delay", spoil: func(all []trace.Request) { all[29].Delay = never }, wants: []want{{check.TurnWithoutDelay, check.Warning, 1, "", []place{{30, `session_id "talk", no timestamp, no delay`}}}}},
		{name: "delay without session", spoil: func(all []trace.Request) { all[29].SessionID = "" }, wants: []want{{check.DelayWithoutSession, check.Error, 1, "", []place{{30, "delay 1500, no timestamp, no session_id"}}}}},
	})
}

func TestDelaysAndOrigin(t *testing.T) {
	at := trace.Some[float64]
	testSpoiled(t, clean, []spoiled{
		{name: "delays that nothing precedes", spoil: func(all []trace.Request) {
			all[1].Delay, all[9].Delay, all[10].Delay = at(2.5), at(7), at(0)
		}, wants: []want{{check.DelayUnused, check.Warning, 2, "", []place{
			{2, "timestamp 300, delay 2.5, no session_id"},
			{10, `timestamp 5373, delay 7, first of session_id "talk"`}}}}},
		{name: "timestamp and delay", spoil: func(all []trace.Request) { all[29].Timestamp = at(90_000) }, wants: []want{{check.TimestampUnused, check.Note, 1, "", []place{{30, `timestamp 90000, delay 1500, session_id "talk"`}}}}},
		{name: "turns out of order", spoil: func(all []trace.Request) {
			all[29].Timestamp, all[29].Delay = at(4000), never
		}, wants: []want{
			{check.TimeBackwards, check.Error, 1, "", []place{{30, "timestamp 4000 after 15601 on line 29"}}},
			{check.SessionDisorder, check.Error, 1, "", []place{{30, `timestamp 4000 after 5373 on line 10, session_id "talk"`}}}}},
		{name: "turns that overlap", spoil: func(all []trace.Request) {
			all[29].Timestamp, all[29].Delay = at(17_000.1), never
			all[9].OutputLength = 17_000 - 5373 + 1
		}, wants: []want{{check.SessionOverlap, check.Warning, 1, "", []place{
			{30, `timestamp 17000.1 is 11627.1 ms after line 10 with output_length 11628, session_id "talk"`}}}}},
		{name: "turns that just do not", spoil: func(all []trace.Request) {
			all[29].Timestamp, all[29].Delay = at(17_000), never
			all[9].OutputLength = 17_000 - 5373
		}},
		{name: "turn that shrinks", spoil: func(all []trace.Request) {
			all[29].InputLength, all[29].HashIDs = 65, []uint64{0, 77_777}
		}, wants: []want{{check.TurnShrinks, check.Note, 1, "", []place{{30, `input_length 65 after 433 on line 10, session_id "talk"`}}}}},
		{name: "turn that diverges", spoil: func(all []trace.Request) {
			all[29].HashIDs = chain(all[29].InputLength, 1, 30)
		}, wants: []want{{check.TurnDiverges, check.Note, 1, "", []place{{30, `block 6 is not 10005 as on line 10, session_id "talk"`}}}}},
		{name: "Unix time in ms", spoil: func(all []trace.Request) { later(all, 1_700_000_000_123) },
			wants: []want{{check.EpochTime, check.Warning, 29, "the first timestamp, 1700000000123, is 2023-11-14 22:13:20 UTC in milliseconds", nil}}},
		{name: "Unix time in s", spoil: func(all []trace.Request) { later(all, 1_700_000_000) },
			wants: []want{{check.EpochTime, check.Warning, 29, "the first timestamp, 1700000000, is 2023-11-14 22:13:20 UTC in seconds", nil}}},
	})
}

func later(all []trace.Request, ms float64) {
	for i := range all[:29] {
		all[i].Timestamp.Value += ms
	}
}

func TestLengths(t *testing.T) {
	testSpoiled(t, clean, []spoiled{
		{name: "zero input", spoil: func(all []trace.Request) {
			all[2].InputLength, all[2].HashIDs = 0, []uint64{}
		}, wants: []want{{check.ZeroInput, check.Error, 1, "", []place{{3, "input_length 0"}}}}},
		{name: "zero output", spoil: func(all []trace.Request) {
			all[2].OutputLength, all[8].OutputLength = 0, 0
		}, wants: []want{{check.ZeroOutput, check.Warning, 2, "", []place{{3, "output_length 0"}, {9, "output_length 0"}}}}},
		{name: "reasoning beyond the answer", spoil: func(all []trace.Request) {
			for i, extra := range []string{`{"reasoning_tokens": 0}`, `{"reasoning_tokens": null}`, `{"reasoning_tokens": "12"}`, `{"recorded": {"reasoning_tokens": 1000000}}`, `{"thinking_tokens": -3}`} {
				all[i].OutputLength, all[i].Extra = 70+i, []byte(extra)
			}
		}, wants: []want{{check.BadReasoning, check.Warning, 3, "", []place{
			{3, `reasoning_tokens "12", output_length 72`}, {4, "recorded.reasoning_tokens 1000000, output_length 73"}, {5, "thinking_tokens -3, output_length 74"}}}}},
		{name: "long lengths", spoil: func(all []trace.Request) {
			all[2].OutputLength = 1_000_001
			all[3].OutputLength = 1_000_000
			all[4].InputLength, all[4].HashIDs = 2_000_000, chain(2_000_000, 1, 100)
			for i := 5; i < 29; i++ { // so that the load does not suggest seconds
				all[i].Timestamp.Value += 30_000
			}
		}, wants: []want{
			{check.LongLength, check.Warning, 2, "", []place{
				{3, "input_length 174, output_length 1000001"}, {5, "input_length 2000000, output_length 72"}}}}},
	})
}

func TestDeclared(t *testing.T) {
	declare := func(r *trace.Request, context, unique int) {
		r.ContextLen, r.UniquePromptLen = trace.Some(context), trace.Some(unique)
	}
	testSpoiled(t, clean, []spoiled{
		{name: "declarations that add up", spoil: func(all []trace.Request) {
			for i := range all {
				declare(&all[i], 64, all[i].InputLength-64)
			}
			declare(&all[5], 0, all[5].InputLength)
			declare(&all[6], all[6].InputLength, 0)
		}},
		{name: "one part alone", spoil: func(all []trace.Request) {
			all[5].ContextLen, all[6].UniquePromptLen = trace.Some(10), trace.Some(10)
		}},
		{name: "declarations that do not", spoil: func(all []trace.Request) {
			for i := range all {
				declare(&all[i], 64, all[i].InputLength-64)
			}
			declare(&all[2], 64, 109)
			declare(&all[3], 64, 66)
			declare(&all[4], 257, 0)
			declare(&all[5], 0, 286)
			all[6].ContextLen = trace.Opt[int]{}
			all[6].UniquePromptLen = trace.Some(323)
		}, wants: []want{
			{check.ContextSum, check.Warning, 5, "", []place{
				{3, "context_len 64 + unique_user_prompt_len 109 = 173, input_length 174"},
				{4, "context_len 64 + unique_user_prompt_len 66 = 130, input_length 129"},
				{5, "context_len 257 + unique_user_prompt_len 0 = 257, input_length 256"},
				{6, "context_len 0 + unique_user_prompt_len 286 = 286, input_length 285"},
				{7, "unique_user_prompt_len 323, input_length 322"}}}}},
	})
}

// TestOnlyUnreadableOrContradictoryIsAnError: what is unusual is a warning or a note.
func TestOnlyUnreadableOrContradictoryIsAnError(t *testing.T) {
	want := []check.Kind{
		check.Empty, check.NotTrace, check.BadRow, // unreadable
		check.NoTime, check.NoTimestamps, check.SessionNotBegun, check.DelayWithoutSession, check.ZeroInput, // incomplete
		check.TimeBackwards, check.SessionDisorder, check.WrongBlockSize, check.TwoParents, check.RepeatedID, check.Cycle, check.MissingRequest, check.DuplicateRequestID, // contradictory
	}
	got := check.KindsOf(check.Error)
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("errors are %v, want %v", got, want)
	}
}
