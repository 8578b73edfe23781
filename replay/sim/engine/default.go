package engine

import (
	"time"

	"moontide/trace/routing"
)

// Default returns one engine that approximates Llama 3.1 8B in FP8 on one H100
// of 80 GB:
//
//   - A step reads 8 GB of weights at about 2.7 of the 3.35 TB/s: 3 ms, plus
//     1 ms for kernel launches and scheduling.
//   - A prompt token takes 16 GFLOP at a little over half of the 1,979 TFLOPS:
//     15 us, or 66,000 tokens a second.
//   - A decoding sequence shares the reading of the weights; sampling and
//     its part of the scheduling take about 10 us.
//   - The KV cache of a token is 32 layers of 8 heads of 128 numbers, twice, a
//     byte each: 64 KiB, read in 26 ns.
//   - 90 % of 80 GB, less weights and activations, leave 60 GB for the KV
//     cache: 57,000 blocks of 16 tokens.
//   - A transfer moves the 64 KiB per token at 45 GB/s (a 400 Gbit/s network),
//     after 2 ms of handshake.
//
// Limits are vLLM's defaults on that GPU.
func Default() Deployment {
	return Deployment{
		Engine: Config{
			Costs: Costs{
				Step:         4 * Millisecond,
				PrefillToken: 15 * Microsecond,
				Sequence:     10 * Microsecond,
				ContextToken: 26 * Nanosecond,
			},
			MaxSeqs:          1024,
			MaxBatchedTokens: 8192,
			BlockSize:        16,
			KVBlocks:         57_000,
			MaxModelLen:      131_072,
		},
		Engines:  1,
		Routing:  routing.RoundRobin,
		Transfer: Transfer{Base: 2 * time.Millisecond, PerToken: 1500 * Nanosecond},
	}
}
