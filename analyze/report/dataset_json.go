package report

import (
	"fmt"
	"io"

	"moontide/analyze"
	"moontide/analyze/dist"
)

// DatasetJSON writes the analysis of the trace called name as one indented JSON
// object. Lengths are in tokens, keys in _ms in milliseconds, the rate in
// requests per second, rates and ratios 0..1. Every key is always there: what
// the trace cannot give is null. The errors are those of w.
func DatasetJSON(w io.Writer, name string, a *analyze.Analysis) error {
	text, err := encoding.MarshalIndent(datasetOf(name, a), "", "  ")
	if err != nil {
		return fmt.Errorf("encoding dataset analysis: %w", err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing dataset analysis: %w", err)
	}
	return nil
}

type datasetJSON struct {
	Trace      string          `json:"trace"`
	Requests   int             `json:"requests"`
	DurationMs *number         `json:"duration_ms"`
	BlockSize  *int            `json:"block_size"`
	ISL        *datasetDist    `json:"isl"`
	OSL        *datasetDist    `json:"osl"`
	Blocks     datasetBlocks   `json:"blocks"`
	Cache      datasetCache    `json:"cache"`
	Context    datasetShared   `json:"context"`
	Arrivals   datasetArrivals `json:"arrivals"`
	Sessions   *struct{}       `json:"sessions"` // not analyzed yet
	Reuse      *struct{}       `json:"reuse"`    // not analyzed yet
}

type datasetDist struct {
	Mean number `json:"mean"`
	Std  number `json:"std"`
	Min  number `json:"min"`
	P25  number `json:"p25"`
	P50  number `json:"p50"`
	P75  number `json:"p75"`
	P90  number `json:"p90"`
	P95  number `json:"p95"`
	P99  number `json:"p99"`
	Max  number `json:"max"`
	Sum  number `json:"sum"`
}

type datasetBlocks struct {
	Total      *int    `json:"total"`
	Unique     *int    `json:"unique"`
	SizeSource *string `json:"size_source"` // "given", "detected" or "assumed"
	Requests   *int    `json:"requests"`    // rows with ids
}

type datasetCache struct {
	Infinite datasetInfinite `json:"infinite"`
	Policies *struct{}       `json:"policies"` // not analyzed yet
}

type datasetInfinite struct {
	BlockHitRate       *number `json:"block_hit_rate"`
	TokenHitRate       *number `json:"token_hit_rate"`
	MeanRequestHitRate *number `json:"mean_request_hit_rate"`
	HitBlocks          *int    `json:"hit_blocks"`
	HitTokens          *int    `json:"hit_tokens"`
	RequestsNoHit      *int    `json:"requests_no_hit"`
	RequestsAllHit     *int    `json:"requests_all_hit"`
}

type datasetShared struct {
	ObservedMean        *number `json:"observed_mean"`
	ObservedUniqueMean  *number `json:"observed_unique_mean"`
	ObservedSharedRatio *number `json:"observed_shared_ratio"`
	DeclaredMean        *number `json:"declared_mean"`
	DeclaredUniqueMean  *number `json:"declared_unique_mean"`
	DeclaredSharedRatio *number `json:"declared_shared_ratio"`
}

type datasetArrivals struct {
	Rate               *number `json:"rate"`
	CV                 *number `json:"cv"`
	Peak1s             *int    `json:"peak_1s"`  // not analyzed yet
	Peak60s            *int    `json:"peak_60s"` // not analyzed yet
	DistinctTimestamps *int    `json:"distinct_timestamps"`
	MaxPerTimestamp    *int    `json:"max_per_timestamp"`
	GridMs             *number `json:"grid_ms"` // not analyzed yet
	FirstMs            *number `json:"first_ms"`
	LastMs             *number `json:"last_ms"`
	Requests           *int    `json:"requests"` // rows with a timestamp
}

func datasetOf(name string, a *analyze.Analysis) datasetJSON {
	d := datasetJSON{
		Trace:    name,
		Requests: a.Requests,
		ISL:      distOf(a.ISL),
		OSL:      distOf(a.OSL),
		Context: datasetShared{
			ObservedMean:        numberOf(a.Observed.Mean),
			ObservedUniqueMean:  numberOf(a.Observed.UniqueMean),
			ObservedSharedRatio: numberOf(a.Observed.SharedRatio),
			DeclaredMean:        numberOf(a.Declared.Mean),
			DeclaredUniqueMean:  numberOf(a.Declared.UniqueMean),
			DeclaredSharedRatio: numberOf(a.Declared.SharedRatio),
		},
	}
	if p := a.Prefix; p != nil {
		d.BlockSize = &p.BlockSize.Tokens
		d.Blocks = datasetBlocks{
			Total: &p.TotalBlocks, Unique: &p.UniqueBlocks,
			SizeSource: &p.BlockSize.How, Requests: &p.Requests,
		}
		d.Cache.Infinite = infiniteOf(p)
	}
	if at := a.Arrivals; at != nil {
		d.DurationMs = new(number(at.Duration()))
		d.Arrivals = arrivalsOf(at)
	}
	return d
}

func infiniteOf(p *analyze.Prefix) datasetInfinite {
	return datasetInfinite{
		BlockHitRate:       new(number(p.Infinite.Block)),
		TokenHitRate:       numberOf(p.Infinite.Token),
		MeanRequestHitRate: new(number(p.Infinite.MeanRequest)),
		HitBlocks:          &p.HitBlocks,
		HitTokens:          &p.HitTokens,
		RequestsNoHit:      &p.NoHit,
		RequestsAllHit:     &p.AllHit,
	}
}

func arrivalsOf(at *analyze.Arrivals) datasetArrivals {
	return datasetArrivals{
		Rate:               numberOf(at.Rate),
		CV:                 numberOf(at.CV),
		DistinctTimestamps: &at.DistinctTimestamps,
		MaxPerTimestamp:    &at.MostAtOnce,
		FirstMs:            new(number(at.First)),
		LastMs:             new(number(at.Last)),
		Requests:           &at.Requests,
	}
}

// distOf is nil for the distribution of no values.
func distOf(d dist.Distribution) *datasetDist {
	if d.Count == 0 {
		return nil
	}
	quantile := func(p float64) number { return number(d.Quantile(p)) }
	return &datasetDist{
		Mean: number(d.Mean), Std: number(d.Std), Min: number(d.Min),
		P25: quantile(0.25), P50: quantile(0.50), P75: quantile(0.75),
		P90: quantile(0.90), P95: quantile(0.95), P99: quantile(0.99),
		Max: number(d.Max), Sum: number(d.Sum),
	}
}
