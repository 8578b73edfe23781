package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/analyze/cache"
	"moontide/trace/routing"
)

func cacheFlags() []cli.Flag {
	return group(inCache,
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "cache", Value: string(cache.LRU), Usage: "`POLICIES`: comma-separated eviction policies to simulate: %s"},
			Choices:    list(oneOf(cache.Policies()...).Noted(string(cache.Belady), "the upper bound")),
		},
		&cli.StringFlag{Name: "capacities", Usage: "`SIZES`: cache sizes in blocks (10000), tokens (5Mtok) or bytes (64GiB)", DefaultText: "a range that fits the trace"},
		&cli.Float64Flag{Name: "kv-bytes-per-token", Usage: "`N`: KV cache bytes per token, which convert tokens to bytes"},
		&cli.IntFlag{Name: "workers", Usage: "simulate `N` workers, each with its own cache"},
		&choiceFlag{
			StringFlag: cli.StringFlag{Name: "routing", Value: "round-robin,random,session,prefix", Usage: "`POLICIES`: comma-separated routing policies to compare with --workers: %s"},
			Choices:    list(oneOf(routing.Policies()...)),
		},
	)
}

// list returns choices that accept several values.
func list(c choiceSet) choiceSet {
	c.List = true
	return c
}

func parseCacheFlags(c *cli.Context) (q cache.Question, err error) {
	if q.Policies, err = listed(c, "cache", cache.ParsePolicy); err != nil {
		return q, err
	}
	if q.Capacities, err = listed(c, "capacities", cache.ParseCapacity); err != nil {
		return q, err
	}
	if q.Routings, err = listed(c, "routing", routing.Parse); err != nil {
		return q, err
	}
	q.Workers, q.BytesPerToken = c.Int("workers"), c.Float64("kv-bytes-per-token")
	if c.IsSet("routing") && !c.IsSet("workers") {
		return q, misused("analyze: --routing needs --workers")
	}
	for _, size := range q.Capacities {
		if size.Unit == cache.Bytes && q.BytesPerToken == 0 {
			return q, misused("analyze: --capacities in bytes need --kv-bytes-per-token")
		}
	}
	return q, nil
}

// listed parses a comma-separated flag and drops repeated values.
func listed[T comparable](c *cli.Context, flag string, parse func(string) (T, error)) ([]T, error) {
	text := c.String(flag)
	if strings.TrimSpace(text) == "" {
		if c.IsSet(flag) {
			return nil, misused("analyze: --%s is empty", flag)
		}
		return nil, nil
	}
	var all []T
	for _, part := range strings.Split(text, ",") {
		one, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, misused("analyze: %v", err)
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}
