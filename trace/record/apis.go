package record

// The APIs whose requests are read.
const (
	Completions = "completions" // OpenAI's and most servers' /v1/completions
	Chat        = "chat"        // /v1/chat/completions
	Responses   = "responses"   // OpenAI's /v1/responses
	Messages    = "messages"    // Anthropic's /v1/messages
	Generate    = "generate"    // SGLang's /generate
)
