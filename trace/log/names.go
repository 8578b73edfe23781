package log

import "strings"

// The names of each fact in logs and attributes of spans: the first one that an entry has
// is read. A point leads into an object, or is part of a name.
var (
	requestIDs  = strings.Fields("custom_id id request_id requestId _id litellm_call_id spanId span_id context.span_id")
	spanIDs     = strings.Fields("spanId span_id context.span_id")
	traceIDs    = strings.Fields("traceId trace_id context.trace_id")
	sessions    = strings.Fields("gen_ai.conversation.id session.id langfuse.session.id")
	calls       = strings.Fields("call_type gen_ai.operation.name llm.request.type url path endpoint uri")
	begins      = strings.Fields("startTimeUnixNano start_time_unix_nano startTime start_time started_at request_time requestTimestamp request_timestamp created_at timeUnixNano time_unix_nano timestamp time ts observedTimeUnixNano observed_time_unix_nano observed_timestamp")
	firsts      = strings.Fields("completionStartTime completion_start_time first_token_time first_token_at langfuse.observation.completion_start_time")
	firstsAfter = strings.Fields("timeToFirstToken time_to_first_token gen_ai.response.time_to_first_chunk gen_ai.server.time_to_first_token gen_ai.client.time_to_first_token")
	ends        = strings.Fields("endTimeUnixNano end_time_unix_nano endTime end_time ended_at finished_at response_time responseTimestamp response_timestamp")
	endsAfter   = strings.Fields("latency duration duration_s latency_ms duration_ms durationMs")

	allMessages = strings.Fields("messages gen_ai.input.messages gen_ai.prompt")
	wrappers    = strings.Fields("body json data") // members of a request that may be an object with its body
	streams     = strings.Fields("stream gen_ai.request.stream gen_ai.request.is_stream gen_ai.is_streaming llm.is_streaming")
	responses   = strings.Fields("response response_body gen_ai.output.messages gen_ai.completion")

	creations = strings.Fields("created created_at")
	cacheHits = strings.Fields("cache_hit")

	statuses     = strings.Fields("http.response.status_code status_code statusCode status response_status")
	endStates    = strings.Fields("status.code status.status_code status")
	errorClasses = strings.Fields("error_information.error_class error.type")
	errorCodes   = strings.Fields("error_information.error_code error.code error.type")
)

// bodyMembers are other members of a request, beside those in its body.
var bodyMembers = map[string][]string{
	"model":      strings.Fields("model gen_ai.request.model gen_ai.response.model"),
	"max_tokens": strings.Fields("gen_ai.request.max_tokens"),
	"tools":      strings.Fields("gen_ai.tool.definitions"),
	"system":     strings.Fields("gen_ai.system_instructions gen_ai.system.instructions"),
}

// The names of numbers of tokens in an object with the usage, and in an entry.
var (
	inputTokens     = strings.Fields("prompt_tokens input_tokens promptTokens inputTokens promptTokenCount gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens")
	outputTokens    = strings.Fields("completion_tokens output_tokens completionTokens outputTokens candidatesTokenCount gen_ai.usage.output_tokens gen_ai.usage.completion_tokens")
	cachedTokens    = strings.Fields("prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens cache_read_input_tokens gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens gen_ai.usage.cached_tokens")
	cacheReads      = strings.Fields("cache_read_input_tokens")
	cacheWrites     = strings.Fields("cache_creation_input_tokens")
	reasoningTokens = strings.Fields("completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens gen_ai.usage.reasoning.output_tokens gen_ai.usage.reasoning_tokens")
)
