package engine

// Parameter is a setting of a deployment or of its engines.
type Parameter struct {
	Name  string // words joined by hyphens; where vLLM has the setting, its name
	Usage string // what it is, in a few words
	// One of these returns a pointer to the setting: to an int, bool,
	// [time.Duration], [Cost], [DecodeTable] or [Sharing].
	OfEngine     func(*Config) any
	OfDeployment func(*Deployment) any
}

// Field returns a pointer to the setting in d; of engines, that of [Deployment.Engine].
func (p Parameter) Field(d *Deployment) any {
	if p.OfEngine != nil {
		return p.OfEngine(&d.Engine)
	}
	return p.OfDeployment(d)
}

// Parameters lists the settings that describe simulated engines, except routing.
var Parameters = []Parameter{
	{Name: "engines", Usage: "number of engines behind a router", OfDeployment: func(d *Deployment) any { return &d.Engines }},
	{Name: "prefill-engines", Usage: "disaggregated: `N` engines for prefill", OfDeployment: func(d *Deployment) any { return &d.Prefill }},
	{Name: "decode-engines", Usage: "disaggregated: `N` engines for decode", OfDeployment: func(d *Deployment) any { return &d.Decode }},
	{Name: "transfer-base", Usage: "disaggregated: base time of a KV transfer from prefill to decode", OfDeployment: func(d *Deployment) any { return &d.Transfer.Base }},
	{Name: "transfer-per-token", Usage: "disaggregated: additional KV transfer time per prompt token", OfDeployment: func(d *Deployment) any { return &d.Transfer.PerToken }},
	{Name: "transfer-sharing", Usage: "disaggregated: how the KV transfers of a prefill engine share its link", OfDeployment: func(d *Deployment) any { return &d.Transfer.Sharing }},
	{Name: "first-token-after-transfer", Usage: "disaggregated: send the first token after the KV transfer, not before", OfDeployment: func(d *Deployment) any { return &d.Transfer.FirstTokenAfter }},
	{Name: "api-server-time", Usage: "time for which each request keeps the API server busy, which takes one after another", OfDeployment: func(d *Deployment) any { return &d.APIServer }},
	{Name: "wake-up-time", Usage: "additional time in the API server of a request that finds no other in flight", OfDeployment: func(d *Deployment) any { return &d.WakeUp }},
	{Name: "request-latency", Usage: "time before a request reaches the router", OfDeployment: func(d *Deployment) any { return &d.Latency }},
	{Name: "data-parallel-size", Usage: "number of ranks of an engine, each with the limits and a KV cache of an engine, that step together", OfEngine: func(c *Config) any { return &c.Ranks }},
	{Name: "max-num-seqs", Usage: "maximum number of sequences running at once on an engine", OfEngine: func(c *Config) any { return &c.MaxSeqs }},
	{Name: "max-num-batched-tokens", Usage: "maximum number of tokens computed in a step; longer prompts are chunked", OfEngine: func(c *Config) any { return &c.MaxBatchedTokens }},
	{Name: "num-gpu-blocks", Usage: "KV cache size of an engine, in blocks", OfEngine: func(c *Config) any { return &c.KVBlocks }},
	{Name: "engine-block-size", Usage: "KV cache block size in tokens", OfEngine: func(c *Config) any { return &c.BlockSize }},
	{Name: "max-model-len", Usage: "maximum number of prompt and output tokens of a request", OfEngine: func(c *Config) any { return &c.MaxModelLen }},
	{Name: "async-scheduling", Usage: "schedule each step when the one before begins, as vLLM does: requests that arrive later wait for one step more", OfEngine: func(c *Config) any { return &c.AsyncScheduling }},
	{Name: "no-prefix-cache", Usage: "compute every prompt in full", OfEngine: func(c *Config) any { return &c.NoPrefixCache }},
	{Name: "step-base", Usage: "base time of an engine step", OfEngine: func(c *Config) any { return &c.Costs.Step }},
	{Name: "prefill-step", Usage: "additional time of a step that computes prompt tokens", OfEngine: func(c *Config) any { return &c.Costs.PrefillStep }},
	{Name: "prefill-per-token", Usage: "additional step time per prompt token computed", OfEngine: func(c *Config) any { return &c.Costs.PrefillToken }},
	{Name: "prefill-attention", Usage: "additional step time per pair of a prompt token computed and a token before it", OfEngine: func(c *Config) any { return &c.Costs.Attention }},
	{Name: "decode-per-sequence", Usage: "additional step time per decoding sequence", OfEngine: func(c *Config) any { return &c.Costs.Sequence }},
	{Name: "decode-table", Usage: "additional step time by the number of decoding sequences, such as `1:0ms,8:2ms,64:9ms`, instead of a time per sequence", OfEngine: func(c *Config) any { return &c.Costs.Decode }},
	{Name: "decode-per-context-token", Usage: "additional step time per token of the decoding sequences' contexts", OfEngine: func(c *Config) any { return &c.Costs.ContextToken }},
	{Name: "phased-tpot", Usage: "for calibration: a token per sequence every `TIME`, each sequence at its own phase", OfEngine: func(c *Config) any { return &c.PhasedTPOT }},
}
