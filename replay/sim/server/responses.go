package server

import "math"

// responsesAPI is OpenAI's responses. An answer that reaches max_output_tokens is
// incomplete. Reasoning is an item of its own, in clear text as with open models.
var responsesAPI = api{
	name: "responses", path: "/v1/responses",
	promptParam: "input", prompt: []promptPart{{"instructions", aString}, {"input", aString + " or " + objects}},
	limits: []string{"max_output_tokens"}, least: "min_tokens", ignoreEOS: "ignore_eos", maxTokens: math.MaxInt,
	objects: []string{"text", "text.format"}, separatesReasoning: true,

	forms: forms{
		accepted: formOf(responseEvent("response.created", `,"response":`+responseBegun) + responseEvent("response.in_progress", `,"response":`+responseBegun)),
		text: itemForms(`"id":"msg_$id","type":"message","role":"assistant"`, "msg_$id", "response.output_text",
			`{"type":"output_text","annotations":[],"logprobs":[],"text":"`, `,"logprobs":[]`),
		reasoning: itemForms(`"id":"rs_$id","type":"reasoning","summary":[]`, "rs_$id", "response.reasoning_text",
			`{"type":"reasoning_text","text":"`, ""),
		ended:   formOf(responseEvent("response.$finish", `,"response":`+responseEnded)),
		whole:   formOf(responseEnded),
		running: formOf("completed"), // of an item before the last one
		stop:    formOf("completed"), length: formOf("incomplete"),
		usage: formOf(`{"input_tokens":$prompt,"input_tokens_details":{"cached_tokens":$cached},"output_tokens":$output,` +
			`"output_tokens_details":{"reasoning_tokens":$reasoned},"total_tokens":$total}`),
		failure: formOf(openAIError),
		failed:  formOf(responseEvent("error", `,"code":"server_error","message":$message,"param":null`)),
		kinds:   openAIKinds,
	},
}

var (
	responseBegun = response("in_progress", "null", "", "null")
	responseEnded = response("$finish", "$incomplete", "$parts", "$usage")
)

// response is a response with a status and what depends on it.
func response(status, details, output, usage string) string {
	return `{"id":"resp_$id","object":"response","created_at":$created,"status":"` + status + `","background":false,"error":null,` +
		`"incomplete_details":` + details + `,"instructions":null,"max_output_tokens":$limit,"model":$model,"output":[` + output + `],` +
		`"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":false,` +
		`"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled",` +
		`"usage":` + usage + `,"user":null,"metadata":{}}`
}

// responseEvent is the form of an event with its number.
func responseEvent(name, members string) string {
	return eventForm(name, members+`,"sequence_number":$sequence`)
}

// itemForms returns the forms of an output item with one content part. content ends where
// the text begins; rest has the other members of text events.
func itemForms(item, id, event, content, rest string) partForms {
	about := func(name, members string) string {
		return responseEvent(name, `,"item_id":"`+id+`","output_index":$index,"content_index":0`+members)
	}
	whole := "{" + item + `,"status":"$finish","content":[` + content + `$text"}]}`
	return partForms{
		opened: formOf(responseEvent("response.output_item.added", `,"output_index":$index,"item":{`+item+`,"status":"in_progress","content":[]}`) +
			about("response.content_part.added", `,"part":`+content+`"}`)),
		token: formOf(about(event+".delta", `,"delta":"$text"`+rest)),
		closed: formOf(about(event+".done", `,"text":"$text"`+rest) +
			about("response.content_part.done", `,"part":`+content+`$text"}`) +
			responseEvent("response.output_item.done", `,"output_index":$index,"item":`+whole)),
		whole: formOf(whole),
	}
}
