package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/trace/routing"
)

// Parameter is a setting of a deployment or of its engines.
type Parameter struct {
	Name  string // words joined by hyphens; where vLLM has the setting, its name
	Usage string // what it is, in a few words
	// One of these returns a pointer to the setting: to an int, bool,
	// [time.Duration], [Cost], [DecodeTable], [Sharing] or [routing.Policy].
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

// Parameters lists the settings that describe simulated engines.
var Parameters = []Parameter{
	{Name: "engines", Usage: "number of engines behind a router", OfDeployment: func(d *Deployment) any { return &d.Engines }},
	{Name: "prefill-engines", Usage: "disaggregated: number `N` of prefill engines", OfDeployment: func(d *Deployment) any { return &d.Prefill }},
	{Name: "decode-engines", Usage: "disaggregated: number `N` of decode engines", OfDeployment: func(d *Deployment) any { return &d.Decode }},
	{Name: "transfer-base", Usage: "disaggregated: base time of a KV transfer from prefill to decode", OfDeployment: func(d *Deployment) any { return &d.Transfer.Base }},
	{Name: "transfer-per-token", Usage: "disaggregated: additional KV transfer time per prompt token", OfDeployment: func(d *Deployment) any { return &d.Transfer.PerToken }},
	{Name: "transfer-sharing", Usage: "disaggregated: how the KV transfers of a prefill engine share its link", OfDeployment: func(d *Deployment) any { return &d.Transfer.Sharing }},
	{Name: "first-token-after-transfer", Usage: "disaggregated: send the first token after the KV transfer, not before", OfDeployment: func(d *Deployment) any { return &d.Transfer.FirstTokenAfter }},
	{Name: "routing", Usage: "routing policy", OfDeployment: func(d *Deployment) any { return &d.Routing }},
	{Name: "request-latency", Usage: "time before a request reaches the router", OfDeployment: func(d *Deployment) any { return &d.Latency }},
	{Name: "data-parallel-size", Usage: "number of ranks per engine, which step together; each has its own KV cache and the limits of an engine", OfEngine: func(c *Config) any { return &c.Ranks }},
	{Name: "max-num-seqs", Usage: "maximum number of sequences that an engine runs at once", OfEngine: func(c *Config) any { return &c.MaxSeqs }},
	{Name: "max-num-batched-tokens", Usage: "maximum number of tokens computed per step; longer prompts are chunked", OfEngine: func(c *Config) any { return &c.MaxBatchedTokens }},
	{Name: "num-gpu-blocks", Usage: "KV cache size of an engine, in blocks", OfEngine: func(c *Config) any { return &c.KVBlocks }},
	{Name: "engine-block-size", Usage: "KV cache block size in tokens", OfEngine: func(c *Config) any { return &c.BlockSize }},
	{Name: "max-model-len", Usage: "maximum number of prompt and output tokens per request", OfEngine: func(c *Config) any { return &c.MaxModelLen }},
	{Name: "async-scheduling", Usage: "schedule each step when the previous one starts, as vLLM does; requests that arrive later wait one more step", OfEngine: func(c *Config) any { return &c.AsyncScheduling }},
	{Name: "no-prefix-cache", Usage: "compute every prompt in full", OfEngine: func(c *Config) any { return &c.NoPrefixCache }},
	{Name: "step-base", Usage: "base time of an engine step", OfEngine: func(c *Config) any { return &c.Costs.Step }},
	{Name: "prefill-step", Usage: "additional time of a step that computes prompt tokens", OfEngine: func(c *Config) any { return &c.Costs.PrefillStep }},
	{Name: "prefill-per-token", Usage: "additional step time per prompt token computed", OfEngine: func(c *Config) any { return &c.Costs.PrefillToken }},
	{Name: "prefill-attention", Usage: "additional step time per pair of a computed prompt token and a preceding token", OfEngine: func(c *Config) any { return &c.Costs.Attention }},
	{Name: "decode-per-sequence", Usage: "additional step time per decoding sequence", OfEngine: func(c *Config) any { return &c.Costs.Sequence }},
	{Name: "decode-table", Usage: "additional step time by number of decoding sequences, such as `1:0ms,8:2ms,64:9ms`; replaces the time per sequence", OfEngine: func(c *Config) any { return &c.Costs.Decode }},
	{Name: "decode-per-context-token", Usage: "additional step time per context token of all decoding sequences", OfEngine: func(c *Config) any { return &c.Costs.ContextToken }},
	{Name: "phased-tpot", Usage: "for calibration: emit a token per sequence every `TIME`, each sequence at its own phase", OfEngine: func(c *Config) any { return &c.PhasedTPOT }},
}

// Text returns the setting of d as [Parameter.Set] reads it.
func (p Parameter) Text(d *Deployment) string { return fieldText(p.Field(d)) }

// Set parses the setting: a whole number, true or false, a time with a unit such as
// 46.7ns, a decode table, or a law of sharing.
func (p Parameter) Set(d *Deployment, text string) error { return setField(p.Field(d), text) }

// IsZero reports whether the setting of d has its zero value.
func (p Parameter) IsZero(d *Deployment) bool {
	switch field := p.Field(d).(type) {
	case *DecodeTable:
		return len(*field) == 0
	default:
		var none Deployment
		return fieldText(field) == p.Text(&none)
	}
}

// FindParameter returns the parameter of a name.
func FindParameter(name string) (p Parameter, found bool) {
	i := slices.IndexFunc(Parameters, func(p Parameter) bool { return p.Name == name })
	if i < 0 {
		return p, false
	}
	return Parameters[i], true
}

func fieldText(field any) string {
	switch field := field.(type) {
	case *int:
		return strconv.Itoa(*field)
	case *bool:
		return strconv.FormatBool(*field)
	case *time.Duration:
		return CostOf(*field).String()
	case *Cost:
		return field.String()
	case *DecodeTable:
		return field.String()
	case *Sharing:
		return string(*field)
	case *routing.Policy:
		return string(*field)
	}
	panic(fmt.Sprintf("engine: a parameter of type %T", field))
}

func setField(field any, text string) (err error) {
	switch field := field.(type) {
	case *int:
		if *field, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%.40q is not a whole number", text)
		}
	case *bool:
		if *field, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%.40q is neither true nor false", text)
		}
	case *time.Duration:
		var cost Cost
		err = setField(&cost, text)
		*field = cost.Duration()
		return err
	case *Cost:
		if *field, err = ParseCost(text); err == nil && (*field < 0 || *field > maxCost) {
			return fmt.Errorf("%.40q is not from 0 to %v", text, maxCost)
		}
		return err
	case *DecodeTable:
		*field, err = ParseDecodeTable(text)
		return err
	case *Sharing:
		*field, err = ParseSharing(text)
		return err
	case *routing.Policy:
		*field, err = routing.Parse(text)
		return err
	}
	return nil
}

// ParseSharing returns the law of a name.
func ParseSharing(name string) (Sharing, error) {
	if slices.Contains(Sharings, Sharing(name)) {
		return Sharing(name), nil
	}
	var names []string
	for _, s := range Sharings {
		names = append(names, string(s))
	}
	return "", fmt.Errorf("%.40q is not one of %s", name, strings.Join(names, ", "))
}
