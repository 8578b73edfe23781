package cache

import (
	"fmt"
	"slices"
	"strings"
)

// KV is the shape of a model's KV cache. Latent and Rope are 0 except for models
// with multi-head latent attention (MLA), whose layers keep a latent and a rotary
// part instead of keys and values.
type KV struct {
	Model    string
	Layers   int
	Heads    int     // KV heads
	HeadSize int     // elements of a key or a value of a head
	Latent   int     // elements of the latent part (kv_lora_rank)
	Rope     int     // elements of the rotary part (qk_rope_head_dim)
	Element  Element // [BF16] in all presets
}

// Element is the element type of a KV cache.
type Element string

// The element types of engines.
const (
	BF16 Element = "bf16"
	FP16 Element = "fp16"
	FP8  Element = "fp8"
	FP32 Element = "fp32"
)

// Elements returns all element types.
func Elements() []Element { return []Element{BF16, FP16, FP8, FP32} }

// ParseElement returns the element type of a name, in any case.
func ParseElement(name string) (Element, error) { return parseName("KV cache type", name, Elements()) }

// Bytes returns the size of an element.
func (e Element) Bytes() int {
	switch e {
	case FP32:
		return 4
	case FP8:
		return 1
	}
	return 2
}

// BytesPerToken returns the size of a token in the cache, over all GPUs that share
// the model. With MLA, or tensor parallelism beyond the number of KV heads, engines
// keep copies, which are not included.
func (k KV) BytesPerToken() int {
	if k.Latent > 0 {
		return k.Layers * (k.Latent + k.Rope) * k.Element.Bytes()
	}
	return 2 * k.Layers * k.Heads * k.HeadSize * k.Element.Bytes()
}

// Arithmetic returns the formula of BytesPerToken: "2 x 32 layers x 8 KV heads x
// 128 x 2 B (bf16) = 131072 B/token", where the first 2 is for key and value.
func (k KV) Arithmetic() string {
	if k.Latent > 0 {
		return fmt.Sprintf("%d layers x (%d latent + %d rope) x %d B (%s) = %d B/token", k.Layers, k.Latent, k.Rope, k.Element.Bytes(), k.Element, k.BytesPerToken())
	}
	return fmt.Sprintf("2 x %d layers x %d KV heads x %d x %d B (%s) = %d B/token", k.Layers, k.Heads, k.HeadSize, k.Element.Bytes(), k.Element, k.BytesPerToken())
}

func grouped(model string, layers, heads, headSize int) KV {
	return KV{Model: model, Layers: layers, Heads: heads, HeadSize: headSize, Element: BF16}
}

func latent(model string, layers, rank, rope int) KV {
	return KV{Model: model, Layers: layers, Latent: rank, Rope: rope, Element: BF16}
}

// presets come from the models' published config.json: num_hidden_layers,
// num_key_value_heads and head_dim (or hidden_size / num_attention_heads), or
// kv_lora_rank and qk_rope_head_dim. Models whose cached tokens change in size with
// age (Gemma 2 and 3, gpt-oss, Llama 4) are omitted.
var presets = []KV{
	grouped("Llama-2-7B", 32, 32, 128),
	grouped("Llama-2-13B", 40, 40, 128),
	grouped("Llama-2-70B", 80, 8, 128),
	grouped("Llama-3-8B", 32, 8, 128),
	grouped("Llama-3-70B", 80, 8, 128),
	grouped("Llama-3.1-8B", 32, 8, 128),
	grouped("Llama-3.1-70B", 80, 8, 128),
	grouped("Llama-3.1-405B", 126, 8, 128),
	grouped("Llama-3.2-1B", 16, 8, 64),
	grouped("Llama-3.2-3B", 28, 8, 128),
	grouped("Llama-3.3-70B", 80, 8, 128),
	grouped("Qwen2.5-7B", 28, 4, 128),
	grouped("Qwen2.5-14B", 48, 8, 128),
	grouped("Qwen2.5-32B", 64, 8, 128),
	grouped("Qwen2.5-72B", 80, 8, 128),
	grouped("Qwen3-4B", 36, 8, 128),
	grouped("Qwen3-8B", 36, 8, 128),
	grouped("Qwen3-14B", 40, 8, 128),
	grouped("Qwen3-32B", 64, 8, 128),
	grouped("Qwen3-30B-A3B", 48, 4, 128),
	grouped("Qwen3-235B-A22B", 94, 4, 128),
	grouped("Mistral-7B", 32, 8, 128),
	grouped("Mistral-Nemo-12B", 40, 8, 128),
	grouped("Mixtral-8x7B", 32, 8, 128),
	grouped("Mixtral-8x22B", 56, 8, 128),
	grouped("Phi-4", 40, 10, 128),
	latent("DeepSeek-V2", 60, 512, 64),
	latent("DeepSeek-V3", 61, 512, 64),
	latent("DeepSeek-R1", 61, 512, 64),
	latent("Kimi-K2", 61, 512, 64),
}

// Presets returns the models that [KVOf] knows.
func Presets() []KV { return slices.Clone(presets) }

// KVOf returns the preset of a model by name, in any case, with or without the
// organization and "-Instruct": "meta-llama/Llama-3.1-8B-Instruct" or "llama-3.1-8b".
// For a distilled model, name the model whose shape it has.
func KVOf(model string) (KV, error) {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	name = strings.TrimPrefix(name, "meta-") // meta-llama/Meta-Llama-3-8B
	for _, suffix := range []string{"-instruct", "-chat", "-base"} {
		name = strings.TrimSuffix(name, suffix)
	}
	for _, k := range presets {
		if strings.EqualFold(k.Model, name) {
			return k, nil
		}
	}
	known := make([]string, len(presets))
	for i, k := range presets {
		known[i] = k.Model
	}
	return KV{}, fmt.Errorf("the KV cache of model %q is not known: give the bytes per token, or one of %s", model, strings.Join(known, ", "))
}
