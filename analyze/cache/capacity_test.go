package cache_test

import (
	"strings"
	"testing"

	"moontide/analyze/cache"
)

func TestParseCapacity(t *testing.T) {
	for text, want := range map[string]cache.Capacity{
		"10000":         {10_000, cache.Blocks},
		" 10000blocks ": {10_000, cache.Blocks},
		"10kblocks":     {10_000, cache.Blocks},
		"5Mtok":         {5e6, cache.Tokens},
		"64GiB":         {64 << 30, cache.Bytes},
		"80 GB":         {80e9, cache.Bytes},
		"2TiB":          {2 << 40, cache.Bytes},
		"1EiB":          {1 << 60, cache.Bytes},
		"0":             {0, cache.Blocks},
	} {
		got, err := cache.ParseCapacity(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
		if again, err := cache.ParseCapacity(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which parses as %v, %v", text, got, again, err)
		}
	}
}

func TestParseCapacityErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "is not a number of blocks",
		"-5":                                "is not a number of blocks",
		"1e9":                               "is not a number of blocks",
		".5GB":                              "is not a number of blocks",
		"5 apples":                          "is not a number of blocks",
		"64G":                               "has no unit: 64Gblocks, 64Gtok or 64GB",
		"99999999999999999999TiB":           "is larger than any cache",
		strings.Repeat("9", 400) + "blocks": "is larger than any cache",
	} {
		if got, err := cache.ParseCapacity(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v; want one with %q", text, got, err, want)
		}
	}
}

func TestCapacityInBlocks(t *testing.T) {
	for _, c := range []struct {
		capacity      cache.Capacity
		blockSize     int
		bytesPerToken float64
		want          int
	}{
		{cache.Capacity{10_000, cache.Blocks}, 512, 0, 10_000},
		{cache.Capacity{5e6, cache.Tokens}, 512, 0, 9765},
		{cache.Capacity{511, cache.Tokens}, 512, 0, 0},
		{cache.Capacity{64 << 30, cache.Bytes}, 512, 131072, 1024},
		{cache.Capacity{64<<30 - 1, cache.Bytes}, 512, 131072, 1023},
		{cache.Capacity{1 << 41, cache.Blocks}, 512, 0, 1 << 41},
		{cache.Capacity{1 << 60, cache.Bytes}, 16, 70_272, 1 << 60 / (16 * 70_272)},
	} {
		got, err := c.capacity.Blocks(c.blockSize, c.bytesPerToken)
		if err != nil || got != c.want {
			t.Errorf("%v: %d blocks, %v; want %d", c.capacity, got, err, c.want)
		}
	}
	for want, err := range map[string]error{
		"2199023255553 blocks hold more tokens than any cache": blocksError(cache.Capacity{1<<41 + 1, cache.Blocks}, 512, 0),
		"68719476736 bytes hold more tokens":                   blocksError(cache.Capacity{64 << 30, cache.Bytes}, 512, 1e-300),
		"hold more tokens":                                     blocksError(cache.Capacity{2e18, cache.Tokens}, 1, 0),
		"needs the bytes per token":                            blocksError(cache.Capacity{1, cache.Bytes}, 512, 0),
		"block size 0":                                         blocksError(cache.Capacity{1, cache.Tokens}, 0, 1),
		`unknown unit ""`:                                      blocksError(cache.Capacity{}, 512, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func blocksError(c cache.Capacity, blockSize int, bytesPerToken float64) error {
	_, err := c.Blocks(blockSize, bytesPerToken)
	return err
}
