package format_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/trace/format"
)

const (
	azureHead   = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	azureRow    = "2023-11-16 18:15:46.6805900,374,44\n"
	burstHead   = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	burstRow    = "5,ChatGPT,472,18,490,Conversation log\n"
	vidurHead   = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
	bailianRow  = `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": 7, "hash_ids": [10, 11, 12]}` + "\n"
	dynamoRow   = `{"event":{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":20,"request":{"output_tokens":1,"replay":{"trace_block_size":16,"input_length":3,"input_sequence_hashes":[7]}}}}` + "\n"
	traceLabRow = `{"session_id": "a", "input_tokens_total": 5, "output_tokens": 2, "timing_events": [{"event_type": "text", "timestamp": "2026-06-01T05:40:20Z"}]}` + "\n"
	nativeRow   = `{"timestamp": 1, "input_length": 5, "output_length": 2}` + "\n"
	logRow      = `{"id":"g","timestamp":1700000000,"request":{"model":"m","prompt":"a"},"response":{"usage":{"prompt_tokens":5,"completion_tokens":2}}}` + "\n"
	talk        = `{"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}`
	wekaRequest = `{"t": 1, "type": "s", "in": 100, "out": 2, "hash_ids": [1]}`
)

func wekaOf(requests string) string {
	return `{"id": "c", "block_size": 64, "hash_id_scope": "local", "requests": [` + requests + `]}` + "\n"
}

func readText(text string, opts format.Options) ([]trace.Request, *format.Reader, error) {
	r, err := format.NewReader(strings.NewReader(text), "t", opts)
	if err != nil {
		return nil, nil, err
	}
	rows, err := trace.Collect(r.Requests())
	return rows, r, err
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBadRows: each error names its line and value. The row before a bad row is
// read, and with SkipBadRows also the row after it.
func TestBadRows(t *testing.T) {
	for name, tc := range map[string]struct {
		before, bad, after string
		want               string
	}{
		"azure: no date":                {azureHead + azureRow, "yesterday,1,2\n", azureRow, `t:3: TIMESTAMP is not a date like 2023-11-16 18:15:46.6805900: "yesterday"`},
		"azure: no such day":            {azureHead + azureRow, "2023-02-29 18:15:46,1,2\n", azureRow, `t:3: TIMESTAMP is not a date like 2023-11-16 18:15:46.6805900: "2023-02-29 18:15:46"`},
		"azure: no such hour":           {azureHead + azureRow, "2023-11-16 24:15:46,1,2\n", azureRow, `t:3: TIMESTAMP is not a date like 2023-11-16 18:15:46.6805900: "2023-11-16 24:15:46"`},
		"azure: half a zone":            {azureHead + azureRow, "2023-11-16 18:15:46+0,1,2\n", azureRow, `t:3: TIMESTAMP is not a date like 2023-11-16 18:15:46.6805900: "2023-11-16 18:15:46+0"`},
		"azure: before the first":       {azureHead + azureRow, "2023-11-16 18:15:46.6805899,1,2\n", azureRow, `t:3: TIMESTAMP is before that of the first row: "2023-11-16 18:15:46.6805899"`},
		"azure: half a row":             {azureHead + azureRow, "2023-11-16 18:15:47,1\n", azureRow, `t:3: 2 fields under a header of 3: "2023-11-16 18:15:47,1"`},
		"azure: more fields":            {azureHead + azureRow, "2023-11-16 18:15:47,1,2,3\n", azureRow, `t:3: 4 fields under a header of 3: "2023-11-16 18:15:47,1,2,3"`},
		"azure: very many fields":       {azureHead + azureRow, strings.Repeat(",", 1000) + "\n", azureRow, `t:3: 65 fields under a header of 3: "` + strings.Repeat(",", 60) + `"...`},
		"azure: negative":               {azureHead + azureRow, "2023-11-16 18:15:47,-1,2\n", azureRow, `t:3: ContextTokens is out of range: "-1" tokens`},
		"azure: huge":                   {azureHead + azureRow, "2023-11-16 18:15:47,1,99999999999999999999999\n", azureRow, `t:3: GeneratedTokens is out of range: "99999999999999999999999" tokens`},
		"azure: beyond float64":         {azureHead + azureRow, "2023-11-16 18:15:47,1,1e999\n", azureRow, `t:3: GeneratedTokens is out of range: "1e999"`},
		"azure: NaN":                    {azureHead + azureRow, "2023-11-16 18:15:47,NaN,2\n", azureRow, `t:3: ContextTokens is not a number: "NaN"`},
		"azure: infinite":               {azureHead + azureRow, "2023-11-16 18:15:47,-Inf,2\n", azureRow, `t:3: ContextTokens is not a number: "-Inf"`},
		"azure: hexadecimal":            {azureHead + azureRow, "2023-11-16 18:15:47,0x10,2\n", azureRow, `t:3: ContextTokens is not a number: "0x10"`},
		"azure: fraction":               {azureHead + azureRow, "2023-11-16 18:15:47,1.5,2\n", azureRow, `t:3: ContextTokens is not a whole number: "1.5"`},
		"azure: empty":                  {azureHead + azureRow, "2023-11-16 18:15:47,,2\n", azureRow, `t:3: ContextTokens is empty`},
		"azure: two files":              {azureHead + azureRow, azureHead, azureRow, `t:3: the header is repeated: these are two files in one`},
		"azure: a quote":                {azureHead + azureRow, "\"2023-11-16,1,2\n", azureRow, `t:3: not a row of CSV: "\"2023-11-16,1,2"`},
		"azure: another format":         {azureHead + azureRow, nativeRow, azureRow, `t:3: a row of a Mooncake trace among those of an Azure trace: not a row of CSV: "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 2}"`},
		"burstgpt: wrong sum":           {burstHead + burstRow, "6,ChatGPT,472,18,491,API log\n", burstRow, `t:3: Total tokens is not the sum of 472 and 18: "491"`},
		"burstgpt: negative time":       {burstHead + burstRow, "-6,ChatGPT,472,18,490,API log\n", burstRow, `t:3: Timestamp is out of range: "-6" s`},
		"burstgpt: nanoseconds":         {burstHead + burstRow, "1700000000000000000,ChatGPT,472,18,490,API log\n", burstRow, `t:3: Timestamp is out of range: "1700000000000000000" s`},
		"vidur: no time":                {vidurHead + "0,1,2\n", ",1,2\n", "3,1,2\n", `t:3: arrived_at is empty`},
		"vidur: exponent and more":      {vidurHead + "0,1,2\n", "1e5e5,1,2\n", "3,1,2\n", `t:3: arrived_at is not a number: "1e5e5"`},
		"bailian: no chat":              {bailianRow, `{"parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": 7}` + "\n", bailianRow, `t:2: no chat_id in "{\"parent_chat_id\": -1, \"timestamp\": 0.5, \"input_length\": 40,"...`},
		"bailian: chat as text":         {bailianRow, `{"chat_id": "x", "timestamp": 0.5, "input_length": 40, "output_length": 7}` + "\n", bailianRow, `t:2: chat_id is not a chat number: "\"x\""`},
		"bailian: no length":            {bailianRow, `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "output_length": null}` + "\n", bailianRow, `t:2: no input_length in "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 0.5, \"outp"...`},
		"bailian: negative id":          {bailianRow, `{"chat_id": 1, "timestamp": 0.5, "input_length": 40, "output_length": 7, "hash_ids": [1, -3]}` + "\n", bailianRow, `t:2: hash_ids has an id that is not an unsigned 64-bit integer: "-3"`},
		"bailian: more ids than fit":    {bailianRow, `{"chat_id": 1, "timestamp": 0.5, "input_length": 1, "output_length": 7, "hash_ids": [0` + strings.Repeat(",0", 99) + `]}` + "\n", bailianRow, `t:2: hash_ids has 100 ids for an input_length of 1: a block has at least one token`},
		"bailian: a key twice":          {bailianRow, `{"chat_id": 1, "timestamp": 0.5, "timestamp": 1, "input_length": 40, "output_length": 7}` + "\n", bailianRow, `t:2: key "timestamp" is given twice`},
		"bailian: half a row":           {bailianRow, bailianRow[:50] + "\n", bailianRow, `t:2: not a JSON object: "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\":"`},
		"bailian: a native row":         {bailianRow, nativeRow, bailianRow, `t:2: a row of a Mooncake trace among those of a Bailian trace: no chat_id in "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 2}"`},
		"mooncake: a Bailian row":       {nativeRow, `{"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5}` + "\n", nativeRow, `t:2: a row of a Bailian trace among those of a Mooncake trace: no input_length in "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 0.5}"`},
		"dynamo: a key twice":           {dynamoRow, strings.Replace(dynamoRow, `"request":{`, `"request":{"output_tokens":2,`, 1), dynamoRow, `t:2: key "output_tokens" is given twice`},
		"sharegpt: a key twice":         {"[" + talk + ",\n", strings.Replace(talk, `"value": "Hi"`, `"value": "Hi", "value": "Ho"`, 1) + ",\n", strings.Replace(talk, `"a"`, `"c"`, 1) + "]", `t:2: conversation 2: conversations[0]: key "value" is given twice`},
		"aiperf: a native row":          {`{"text_input": "a", "output_length": 1}` + "\n", `{"input_length": 1, "output_length": 1, "input_length": 2}` + "\n", nativeRow, `t:2: key "input_length" is given twice`},
		"tracelab: no session":          {traceLabRow, strings.Replace(traceLabRow, `"session_id": "a", `, "", 1), traceLabRow, `t:2: no session_id in "{\"input_tokens_total\": 5, \"output_tokens\": 2, \"timing_events"...`},
		"tracelab: no length":           {traceLabRow, strings.Replace(traceLabRow, `"input_tokens_total": 5, `, "", 1), traceLabRow, `t:2: no input_tokens_total in "{\"session_id\": \"a\", \"output_tokens\": 2, \"timing_events\": [{\""...`},
		"tracelab: too long":            {traceLabRow, strings.Replace(traceLabRow, "5,", "16777217,", 1), traceLabRow, `t:2: input_tokens_total is out of range: 16777217, more than 16777216 tokens`},
		"tracelab: a number as date":    {traceLabRow, strings.Replace(traceLabRow, `"2026-06-01T05:40:20Z"`, "1780292420", 1), traceLabRow, `t:2: timing_events has an event whose timestamp is not a string: "1780292420"`},
		"tracelab: no date":             {traceLabRow, strings.Replace(traceLabRow, "T05", "T25", 1), traceLabRow, `t:2: timing_events has an event whose timestamp is not a date like 2023-11-16 18:15:46.6805900: "2026-06-01T25:40:20Z"`},
		"tracelab: events of texts":     {traceLabRow, strings.Replace(traceLabRow, "[{", `["x", {`, 1), traceLabRow, `t:2: timing_events has an element that is not an object: "\"x\""`},
		"tracelab: a native row":        {traceLabRow, nativeRow, traceLabRow, `t:2: a row of a Mooncake trace among those of a TraceLab trace: no session_id in "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 2}"`},
		"mooncake: a whole Bailian row": {nativeRow, bailianRow, nativeRow, `t:2: a row of a Bailian trace among those of a Mooncake trace: times are seconds and block ids are hashes of single blocks: "{\"chat_id\": 1, \"parent_chat_id\": -1, \"timestamp\": 0.5, \"inpu"...`},
		"sharegpt: a native row":        {"[" + talk + ",\n", strings.TrimSpace(nativeRow) + ",\n", strings.Replace(talk, `"a"`, `"c"`, 1) + "]", `t:2: conversation 2: a row of a Mooncake trace among those of a ShareGPT file: no conversations in "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 2}"`},
		"burstgpt: two marked files":    {burstHead + burstRow, "\ufeff" + burstHead, burstRow, `t:3: the header is repeated: these are two files in one`},
		"mooncake: no output":           {nativeRow, `{"timestamp": 1, "input_length": 5}` + "\n", nativeRow, `t:2: no output_length in "{\"timestamp\": 1, \"input_length\": 5}" (format aiperf accepts such rows, with length 0 and a mark)`},
		"aiperf: two texts":             {`{"text_input": "a", "output_length": 1}` + "\n", `{"text_input": "a", "messages": [], "output_length": 1}` + "\n", nativeRow, `t:2: messages is a second text of the prompt: "{\"text_input\": \"a\", \"messages\": [], \"output_length\": 1}"`},
		"aiperf: no prompt":             {`{"text_input": "a", "output_length": 1}` + "\n", `{"output_length": 1}` + "\n", nativeRow, `t:2: no input_length, text_input, messages or payload in "{\"output_length\": 1}"`},
		"aiperf: a message":             {`{"text_input": "a", "output_length": 1}` + "\n", `{"messages": [null], "output_length": 1}` + "\n", nativeRow, `t:2: the prompt is not text: "null"`},
		"aiperf: a payload":             {`{"text_input": "a", "output_length": 1}` + "\n", `{"payload": {"x": 1}, "output_length": 1}` + "\n", nativeRow, `t:2: payload has neither prompt nor messages: "{\"x\": 1}"`},
		"weka: a key twice":             {wekaOf(wekaRequest), strings.Replace(wekaOf(`{"t": 1, "t": 2, "in": 1, "out": 2}`), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: requests[0]: key "t" is given twice`},
		"weka: no t":                    {wekaOf(wekaRequest), strings.Replace(wekaOf(`{"in": 1, "out": 2}`), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: requests[0] has no t: "{\"in\": 1, \"out\": 2}"`},
		"weka: no length":               {wekaOf(wekaRequest), strings.Replace(wekaOf(`{"t": 1, "in": 1}`), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: requests[0] needs both in and out: "{\"t\": 1, \"in\": 1}"`},
		"weka: a negative time":         {wekaOf(wekaRequest), strings.Replace(wekaOf(`{"t": -1, "in": 1, "out": 1}`), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: requests[0].t is out of range: "-1" s`},
		"weka: in a sub-agent":          {wekaOf(wekaRequest), strings.Replace(wekaOf(`{"t": 1, "type": "subagent", "requests": [{"t": 1, "in": 1.5, "out": 1}]}`), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: requests[0].requests[0].in is not a whole number: "1.5"`},
		"weka: on several lines":        {wekaOf(wekaRequest), strings.Replace(wekaOf("\n\n{\"t\": 1,\n\"in\": 1}"), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:4: requests[0] needs both in and out: "{\"t\": 1,\n\"in\": 1}"`},
		"weka: an id":                   {wekaOf(wekaRequest), strings.Replace(wekaOf(`{"t": 1, "in": 100, "out": 1, "hash_ids": [1.0]}`), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: requests[0].hash_ids has an id that is not an unsigned 64-bit integer: "1.0"`},
		"weka: not a request":           {wekaOf(wekaRequest), strings.Replace(wekaOf(`3`), `"c"`, `"d"`, 1), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: requests[0] is not an object: "3"`},
		"weka: one name twice":          {wekaOf(wekaRequest), wekaOf(wekaRequest), strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: id is already used by a conversation in t: "c"`},
		"weka: another block size":      {wekaOf(wekaRequest), `{"id": "x", "block_size": 16, "requests": []}` + "\n", strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: block_size is not 64 as in t: 16`},
		"weka: another scope":           {wekaOf(wekaRequest), `{"id": "x", "hash_id_scope": "mine", "requests": []}` + "\n", strings.Replace(wekaOf(wekaRequest), `"c"`, `"e"`, 1), `t:2: hash_id_scope is neither local nor global: "mine"`},
		"dynamo: another schema":        {dynamoRow, strings.Replace(dynamoRow, ".v1", ".v2", 1), dynamoRow, `t:2: schema is not dynamo.request.trace.v1: "dynamo.request.trace.v2"`},
		"dynamo: another block size":    {dynamoRow, strings.Replace(dynamoRow, ":16", ":32", 1), dynamoRow, `t:2: request.replay.trace_block_size is not 16 as in t:1: 32`},
		"dynamo: no length":             {dynamoRow, strings.Replace(dynamoRow, `"input_length":3,`, "", 1), dynamoRow, `t:2: no input_tokens and no replay.input_length in "{\"output_tokens\":1,\"replay\":{\"trace_block_size\":16,\"input_se"...`},
		"dynamo: an id beyond uint64":   {dynamoRow, strings.Replace(dynamoRow, `[7]`, "[18446744073709551616]", 1), dynamoRow, `t:2: request.replay.input_sequence_hashes has an id that is not an unsigned 64-bit integer: "18446744073709551616"`},
		"dynamo: event as text":         {dynamoRow, `{"event": "x"}` + "\n", dynamoRow, `t:2: event is not an object: "\"x\""`},
		"dynamo: a native row":          {dynamoRow, nativeRow, dynamoRow, `t:2: a row of a Mooncake trace among those of a Dynamo trace: schema is not dynamo.request.trace.v1: ""`},
		"sharegpt: not an object":       {"[" + talk + ",\n", `{"id": "b", "conversations": ["x"]},` + "\n", talk + "]", `t:2: conversation 2: conversations[0] is not an object: "\"x\""`},
		"sharegpt: behind a quote":      {"[" + strings.Replace(talk, "Hi", `\" ]} {`, 1) + ",\n", `{"id": "b"},` + "\n", talk + "]", `t:2: conversation 2: no conversations in "{\"id\": \"b\"}"`},
		"sharegpt: nobody":              {"[" + talk + ",\n", `{"id": "b", "conversations": [{"value": "x"}]},` + "\n", talk + "]", `t:2: conversation 2: conversations[0] needs both from and value: "{\"value\": \"x\"}"`},
		"sharegpt: a number said":       {"[" + talk + ",\n", `{"id": "b", "conversations": [{"from": "human", "value": 3}]},` + "\n", talk + "]", `t:2: conversation 2: conversations[0].value is not a string: "3"`},
		"sharegpt: not a conversation":  {"[" + talk + ",\n", `{"id": "b"},` + "\n", talk + "]", `t:2: conversation 2: no conversations in "{\"id\": \"b\"}"`},
		"mooncake: not JSON":            {nativeRow, `TIMESTAMP,ContextTokens` + "\n", nativeRow, `t:2: not a JSON object: "TIMESTAMP,ContextTokens"`},
		"mooncake: array":               {nativeRow, `[1, 2]` + "\n", nativeRow, `t:2: not a JSON object: "[1, 2]"`},
		"mooncake: half":                {nativeRow, `{"input_length": 5, "outp` + "\n", nativeRow, `t:2: not a JSON object: "{\"input_length\": 5, \"outp"`},
		"mooncake: no input":            {nativeRow, `{"output_length": 5}` + "\n", nativeRow, `t:2: no input_length in "{\"output_length\": 5}"`},
		"mooncake: null output":         {nativeRow, `{"input_length": 5, "output_length": null}` + "\n", nativeRow, `t:2: no output_length in "{\"input_length\": 5, \"output_length\": null}" (format aiperf accepts such rows, with length 0 and a mark)`},
		"mooncake: negative":            {nativeRow, `{"input_length": -5, "output_length": 1}` + "\n", nativeRow, `t:2: input_length is out of range: "-5" tokens`},
		"mooncake: absurd":              {nativeRow, `{"input_length": 100000001, "output_length": 1}` + "\n", nativeRow, `t:2: input_length is out of range: "100000001" tokens`},
		"mooncake: absurd by exponent":  {nativeRow, `{"input_length": 1e300, "output_length": 1}` + "\n", nativeRow, `t:2: input_length is out of range: "1e300" tokens`},
		"mooncake: fraction":            {nativeRow, `{"input_length": 1.5, "output_length": 1}` + "\n", nativeRow, `t:2: input_length is not a whole number: "1.5"`},
		"mooncake: text for a number":   {nativeRow, `{"input_tokens": "5", "output_length": 1}` + "\n", nativeRow, `t:2: input_tokens is not a number: "\"5\""`},
		"mooncake: negative time":       {nativeRow, `{"timestamp": -1, "input_length": 5, "output_length": 1}` + "\n", nativeRow, `t:2: timestamp is out of range: "-1" ms`},
		"mooncake: infinite time":       {nativeRow, `{"timestamp": 1e999, "input_length": 5, "output_length": 1}` + "\n", nativeRow, `t:2: timestamp is out of range: "1e999"`},
		"mooncake: negative id":         {nativeRow, `{"input_length": 5, "output_length": 1, "hash_ids": [1, -2]}` + "\n", nativeRow, `t:2: hash_ids has an id that is not an unsigned 64-bit integer: "-2"`},
		"mooncake: id beyond 64 bits":   {nativeRow, `{"input_length": 5, "output_length": 1, "hash_ids": [18446744073709551616]}` + "\n", nativeRow, `t:2: hash_ids has an id that is not an unsigned 64-bit integer: "18446744073709551616"`},
		"mooncake: id as float":         {nativeRow, `{"input_length": 5, "output_length": 1, "hash_ids": [1.0]}` + "\n", nativeRow, `t:2: hash_ids has an id that is not an unsigned 64-bit integer: "1.0"`},
		"mooncake: ids as text":         {nativeRow, `{"input_length": 5, "output_length": 1, "hash_ids": "1"}` + "\n", nativeRow, `t:2: hash_ids is not an array: "\"1\""`},
		"mooncake: session as number":   {nativeRow, `{"input_length": 5, "output_length": 1, "session_id": 4}` + "\n", nativeRow, `t:2: session_id is not a string: "4"`},
		"mooncake: after as text":       {nativeRow, `{"input_length": 5, "output_length": 1, "after": "a"}` + "\n", nativeRow, `t:2: after is not an array: "\"a\""`},
		"mooncake: after with numbers":  {nativeRow, `{"input_length": 5, "output_length": 1, "after": [1]}` + "\n", nativeRow, `t:2: after has an id that is not a string: "1"`},
		"mooncake: kind of delay":       {nativeRow, `{"input_length": 5, "output_length": 1, "delay_kind": "nap"}` + "\n", nativeRow, `t:2: delay_kind is neither think nor tool: "nap"`},
		"mooncake: key twice":           {nativeRow, `{"input_length": 5, "output_length": 1, "input_length": 6}` + "\n", nativeRow, `t:2: key "input_length" is given twice`},
		"mooncake: control character":   {nativeRow, "{\"input_length\": 5, \"output_length\": 1, \"session_id\": \"a\x01\"}" + "\n", nativeRow, `t:2: not a JSON object: "{\"input_length\": 5, \"output_length\": 1, \"session_id\": \"a\x01\"}"`},
		"mooncake: invalid UTF-8":       {nativeRow, "{\"input_length\": 5, \"output_length\": 1, \"x\": \"\xff\"}" + "\n", nativeRow, `t:2: not a JSON object: "{\"input_length\": 5, \"output_length\": 1, \"x\": \"\xff\"}"`},
		"mooncake: Azure's CSV":         {nativeRow, `TIMESTAMP,ContextTokens,GeneratedTokens` + "\n", nativeRow, `t:2: a row of an Azure trace among those of a Mooncake trace: the header of an Azure trace in CSV, not a JSON object: "TIMESTAMP,ContextTokens,GeneratedTokens"`},
		"mooncake: BurstGPT's CSV":      {nativeRow, `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type` + "\n", nativeRow, `t:2: a row of a BurstGPT trace among those of a Mooncake trace: the header of a BurstGPT trace in CSV, not a JSON object: "Timestamp,Model,Request tokens,Response tokens,Total tokens,"...`},
		"mooncake: half a log's row":    {nativeRow, `{"question": "a secr` + "\n", nativeRow, `t:2: not a JSON object, or cut off`},
		"mooncake: rest behind":         {nativeRow, `{"input_length": 5, "output_length": 1} {}` + "\n", nativeRow, `t:2: not a JSON object: "{\"input_length\": 5, \"output_length\": 1} {}"`},
		"mooncake: leading zero":        {nativeRow, `{"input_length": 05, "output_length": 1}` + "\n", nativeRow, `t:2: not a JSON object: "{\"input_length\": 05, \"output_length\": 1}"`},
		"log: no JSON":                  {logRow, `{"id":"secret` + "\n", logRow, `t:2: not a JSON object, or cut off`},
		"log: a number":                 {logRow, `17` + "\n", logRow, `t:2: not a JSON object, or cut off`},
		"log: an unknown object":        {logRow, `{"secret":1}` + "\n", logRow, `t:2: not an entry of a known request log: it has the keys of none`},
		"log: a key twice":              {logRow, `{"custom_id":"a","custom_id":"b"}` + "\n", logRow, `t:2: an object has a key twice`},
		"log: usage":                    {logRow, `{"request":{},"response":{"usage":{"prompt_tokens":"secret"}}}` + "\n", logRow, `t:2: response.usage.prompt_tokens is not a number`},
		"log: many tokens":              {logRow, `{"request":{},"response":{"usage":{"prompt_tokens":1e12}}}` + "\n", logRow, `t:2: response.usage.prompt_tokens is not a number of tokens`},
		"log: a time":                   {logRow, `{"call_type":"completion","startTime":"secret"}` + "\n", logRow, `t:2: startTime is not a time`},
		"log: a long time ago":          {logRow, `{"call_type":"completion","startTime":5}` + "\n", logRow, `t:2: startTime is not a time`},
		"log: a body":                   {logRow, `{"custom_id":"a","body":[]}` + "\n", logRow, `t:2: body is not an object`},
		"log: spans":                    {logRow, `{"resourceSpans":[{"scopeSpans":{}}]}` + "\n", logRow, `t:2: scopeSpans is not an array`},
		"log: no span":                  {logRow, `{"resourceSpans":["secret"]}` + "\n", logRow, `t:2: an element of scopeSpans|scope_spans|instrumentationLibrarySpans is not an object`},
		"log: logs":                     {logRow, `{"resourceLogs":[{"scopeLogs":"secret"}]}` + "\n", logRow, `t:2: scopeLogs is not an array`},
		"log: deep":                     {logRow, strings.Repeat("[", 1_000_000) + "\n", logRow, `t:2: not a JSON object, or cut off`},
		"log: a row of many MB":         {logRow, `{"request":{"prompt":"` + strings.Repeat("secret", format.MaxRow/6+1) + `"},"response":{}}` + "\n", logRow, `t:2: row is longer than 64 MiB`},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.before + tc.bad + tc.after
			_, _, err := readText(text, format.Options{Record: withKey.Record})
			if err == nil || err.Error() != tc.want {
				t.Fatalf("error is\n%v\nwant\n%v", err, tc.want)
			}
			var row *trace.RowError
			if !errors.As(err, &row) || row.File != "t" {
				t.Errorf("%#v does not name the place", err)
			}
			good, _, err := readText(tc.before, format.Options{SkipBadRows: true, Record: withKey.Record})
			if err != nil {
				t.Fatal(err)
			}
			rows, r, err := readText(text, format.Options{SkipBadRows: true, Record: withKey.Record})
			if err != nil {
				t.Fatal(err)
			}
			skipped, reasons := r.Skipped()
			if skipped != 1 || len(reasons) != 1 || reasons[0].Error() != tc.want {
				t.Errorf("%d rows were skipped: %v", skipped, reasons)
			}
			if len(rows) != len(good)+1 {
				t.Errorf("%d rows are left, want %d and one more", len(rows), len(good))
			}
		})
	}
}

// TestHalfFiles: a file that is truncated, or continues after its end, is reported
// after the rows before that point.
func TestHalfFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		rows       int
	}{
		"weka, cut":              {wekaOf(wekaRequest)[:90], `t:1: the file ends within the object that starts on line 1: "{\"id\": \"c\", \"block_size\": 64, \"hash_id_scope\": \"local\", \"req"...`, 0},
		"weka, the second cut":   {wekaOf(wekaRequest) + wekaOf(wekaRequest)[:90], `t:2: the file ends within the object that starts on line 2: "{\"id\": \"c\", \"block_size\": 64, \"hash_id_scope\": \"local\", \"req"...`, 1},
		"sharegpt, cut":          {"[\n" + talk + ",\n" + talk[:30], `t:3: the file ends within the object that starts on line 3: "{\"id\": \"a\", \"conversations\": ["`, 1},
		"sharegpt, no end":       {"[\n" + talk + "\n", `t:3: the file ends within its array`, 1},
		"sharegpt, no comma":     {"[" + talk + "\n" + talk + "]", `t:2: expected a comma or the end of the array: "{\"id\": \"a\", \"conversations\": [{\"from\": \"human\", \"value\": \"Hi"...`, 1},
		"sharegpt, a comma more": {"[" + talk + ",]", `t:1: not a JSON object: "]"`, 1},
		"sharegpt, and more":     {"[" + talk + "]\n" + talk, `t:2: text after the end of the array: "{\"id\": \"a\", \"conversations\": [{\"from\": \"human\", \"value\": \"Hi"...`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readText(tc.text, format.Options{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("error is\n%v\nwant\n%v", err, tc.want)
			}
			rows, r, err := readText(tc.text, format.Options{SkipBadRows: true})
			if n, _ := r.Skipped(); err != nil || n != 1 || len(rows) != tc.rows {
				t.Errorf("%d skipped, %d rows, %v", n, len(rows), err)
			}
		})
	}
	for _, head := range []string{"", "a,b\n", "TIMESTAMP,ContextTokens\n"} {
		_, err := format.NewReader(strings.NewReader(head), "t", format.Options{Format: format.Azure})
		if err == nil || !strings.Contains(err.Error(), "not the header of an Azure trace, which has the columns TIMESTAMP, ContextTokens, GeneratedTokens") {
			t.Errorf("header %q: %v", head, err)
		}
	}
	if _, err := format.NewReader(strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n"), "t", format.Options{}); err == nil {
		t.Error("a column twice is read")
	}
}

// broken fails in the middle.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = errors.New("the disk is gone")
	}
	return n, err
}

// TestDamagedFiles: an error of the whole file is not skipped like a bad row.
func TestDamagedFiles(t *testing.T) {
	for name, text := range map[string]string{
		"azure": azureHead + azureRow, "bailian": bailianRow, "dynamo": dynamoRow, "weka": wekaOf(wekaRequest), "sharegpt": "[" + talk + ",", "mooncake": nativeRow, "tracelab": traceLabRow, "openai-log": `{"request":{},"response":{}}` + "\n",
	} {
		r, err := format.NewReader(broken{strings.NewReader(text)}, "t", format.Options{SkipBadRows: true, Record: withKey.Record})
		if err == nil {
			_, err = trace.Collect(r.Requests())
		}
		if err == nil || !strings.Contains(err.Error(), "the disk is gone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFolders(t *testing.T) {
	open := func(dir string) ([]trace.Request, *format.Reader, error) {
		r, err := format.Open(dir, format.Options{})
		if err != nil {
			return nil, nil, err
		}
		defer r.Close()
		rows, err := trace.Collect(r.Requests())
		return rows, r, err
	}
	t.Run("empty", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "notes.txt", "x")
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "a folder without files that end in .json or .jsonl") {
			t.Error(err)
		}
	})
	t.Run("of another format", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "a.jsonl", bailianRow)
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "only weka and dynamo traces and request logs can be folders") {
			t.Error(err)
		}
	})
	t.Run("of two formats", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "a.json", wekaOf(wekaRequest))
		write(t, dir, "b.jsonl", nativeRow)
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), `b.jsonl:1: a row of a Mooncake trace among those of a Weka trace: no id in`) {
			t.Error(err)
		}
	})
	t.Run("links", func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		write(t, other, "real", wekaOf(wekaRequest))
		write(t, dir, "a.json", strings.Replace(wekaOf(wekaRequest), `"c"`, `"d"`, 1))
		for from, to := range map[string]string{"b.json": filepath.Join(other, "real"), "c.json": dir, "d.json": os.DevNull} {
			if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
				t.Skip(err)
			}
		}
		rows, r, err := open(dir)
		if err != nil || len(rows) != 2 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		if !strings.Contains(noted(r), "not read: 2\n") {
			t.Errorf("notes\n%s", noted(r))
		}
		if err := os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "e.json")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "e.json") {
			t.Errorf("a link to nothing: %v", err)
		}
	})
	t.Run("shards of Dynamo", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "trace.000000.jsonl", strings.Replace(dynamoRow, ":20,", ":50,", 1))
		write(t, dir, "trace.000001.jsonl", dynamoRow)
		rows, _, err := open(dir)
		if err != nil || len(rows) != 2 || rows[0].Timestamp.Value != 0 || rows[1].Timestamp.Value != 30 {
			t.Errorf("%v, %v", rows, err)
		}
		write(t, dir, "trace.000002.jsonl", strings.Replace(dynamoRow, ":16", ":32", 1))
		if _, _, err := open(dir); err == nil || !strings.Contains(err.Error(), "trace.000002.jsonl:1: request.replay.trace_block_size is not 16 as in ") {
			t.Error(err)
		}
	})
}
