package report

import (
	"io"

	"moontide/analyze"
	"moontide/trace/stats"
)

// JSON writes what is known as one indented JSON object. Lengths are in tokens,
// keys in _ms in milliseconds, the rate in requests per second, rates and
// ratios 0..1. Every key is always there: what the trace cannot give, or was
// not asked for, is null. The errors are those of w.
func (d Dataset) JSON(w io.Writer) error {
	return writeJSON(w, datasetOf(d))
}

type datasetJSON struct {
	Trace       string           `json:"trace"`
	Requests    int              `json:"requests"`
	DurationMs  *number          `json:"duration_ms"`
	BlockSize   *int             `json:"block_size"`
	ISL         *lengthJSON      `json:"isl"`
	OSL         *lengthJSON      `json:"osl"`
	Blocks      blocksJSON       `json:"blocks"`
	Cache       cachesJSON       `json:"cache"`
	Context     contextJSON      `json:"context"`
	Arrivals    arrivalsJSON     `json:"arrivals"`
	Sessions    *sessionsJSON    `json:"sessions"`
	Reuse       *reuseJSON       `json:"reuse"`
	Lengths     lengthsJSON      `json:"lengths"`
	Sharing     *sharingJSON     `json:"sharing"`
	Concurrency *concurrencyJSON `json:"concurrency"`
}

type distJSON struct {
	Count int    `json:"count"`
	Mean  number `json:"mean"`
	Std   number `json:"std"`
	Min   number `json:"min"`
	P1    number `json:"p1"`
	P5    number `json:"p5"`
	P10   number `json:"p10"`
	P25   number `json:"p25"`
	P50   number `json:"p50"`
	P75   number `json:"p75"`
	P90   number `json:"p90"`
	P95   number `json:"p95"`
	P99   number `json:"p99"`
	P99_9 number `json:"p99_9"`
	Max   number `json:"max"`
	Sum   number `json:"sum"`
}

// lengthJSON is a distribution with its shape.
type lengthJSON struct {
	*distJSON
	Histogram histogramJSON `json:"histogram"`
}

// histogramJSON has one edge more than counts. A count is of the values from its
// lower edge up to, and but for the last without, its upper one.
type histogramJSON struct {
	Log    bool     `json:"log"` // columns are equally wide on a log axis
	Edges  []number `json:"edges"`
	Counts []int    `json:"counts"`
}

type lengthsJSON struct {
	Ratio    *number     `json:"isl_per_osl"` // of the sums
	Ratios   *lengthJSON `json:"ratios"`      // of each request with an answer
	Pearson  *number     `json:"pearson"`
	Spearman *number     `json:"spearman"`
	// Requests that say so of their lengths, by the mark of the trace's reader.
	EstimatedISL int `json:"isl_estimated"`
	EstimatedOSL int `json:"osl_estimated"`
	MissingOSL   int `json:"osl_missing"`
}

type blocksJSON struct {
	Total      *int    `json:"total"`
	Unique     *int    `json:"unique"`
	SizeSource *string `json:"size_source"` // "given", "detected" or "assumed"
	Requests   *int    `json:"requests"`    // rows with ids
	Fitting    *int    `json:"fitting"`     // of them, those that the block size fits
	BetterSize *int    `json:"better_size"` // that fits more; null where none is known
}

type cachesJSON struct {
	Infinite      infiniteJSON   `json:"infinite"`
	Policies      []cacheJSON    `json:"policies"`
	Smallest      []smallestJSON `json:"smallest"`
	Workers       []fleetJSON    `json:"workers"`
	RoomForReuse  *int           `json:"room_for_reuse_blocks"` // null where Belady's bound was not asked for
	BytesPerToken *number        `json:"kv_bytes_per_token"`
}

type infiniteJSON struct {
	BlockHitRate       *number `json:"block_hit_rate"`
	TokenHitRate       *number `json:"token_hit_rate"`
	MeanRequestHitRate *number `json:"mean_request_hit_rate"`
	HitBlocks          *int    `json:"hit_blocks"`
	HitTokens          *int    `json:"hit_tokens"`
	RequestsNoHit      *int    `json:"requests_no_hit"`
	RequestsAllHit     *int    `json:"requests_all_hit"`
}

type contextJSON struct {
	ObservedMean        *number `json:"observed_mean"`
	ObservedUniqueMean  *number `json:"observed_unique_mean"`
	ObservedSharedRatio *number `json:"observed_shared_ratio"`
	DeclaredMean        *number `json:"declared_mean"`
	DeclaredUniqueMean  *number `json:"declared_unique_mean"`
	DeclaredSharedRatio *number `json:"declared_shared_ratio"`
}

type arrivalsJSON struct {
	Rate               *number `json:"rate"`
	CV                 *number `json:"cv"`
	Peak1s             *int    `json:"peak_1s"`
	Peak60s            *int    `json:"peak_60s"`
	DistinctTimestamps *int    `json:"distinct_timestamps"`
	MaxPerTimestamp    *int    `json:"max_per_timestamp"`
	GridMs             *number `json:"grid_ms"`
	FirstMs            *number `json:"first_ms"`
	LastMs             *number `json:"last_ms"`
	Requests           *int    `json:"requests"`  // rows with a timestamp
	Backwards          *int    `json:"backwards"` // of them, those before the row above
	Dispersion1s       *number `json:"dispersion_1s"`
	Dispersion60s      *number `json:"dispersion_60s"`
}

func datasetOf(data Dataset) datasetJSON {
	a := data.Analysis
	d := datasetJSON{
		Trace:    data.Name,
		Requests: a.Requests,
		ISL:      lengthOf(a.ISL),
		OSL:      lengthOf(a.OSL),
		Context: contextJSON{
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
		d.Blocks = blocksJSON{
			Total: &p.TotalBlocks, Unique: &p.UniqueBlocks,
			SizeSource: &p.BlockSize.How, Requests: &p.Requests,
			Fitting: &a.BlockFit.Fits, BetterSize: orNull(a.BlockFit.Better, a.BlockFit.Better > 0),
		}
		d.Cache.Infinite = infiniteOf(p)
	}
	d.Lengths = lengthsJSON{
		Ratio: numberOf(a.Lengths.Ratio), Ratios: lengthOf(a.Lengths.Ratios),
		Pearson: numberOf(a.Lengths.Pearson), Spearman: numberOf(a.Lengths.Spearman),
		EstimatedISL: a.Lengths.EstimatedISL, EstimatedOSL: a.Lengths.EstimatedOSL, MissingOSL: a.Lengths.MissingOSL,
	}
	if c := data.Cache; c != nil && c.Curve != nil {
		d.Cache.Policies, d.Cache.Smallest, d.Cache.Workers = c.policies(), c.smallest(), c.fleets()
		d.Cache.RoomForReuse = orNull(c.RoomForReuse.Value, c.RoomForReuse.Set)
		if c.BytesPerToken > 0 {
			d.Cache.BytesPerToken = new(number(c.BytesPerToken))
		}
	}
	if p := a.Prefix; p != nil {
		d.Reuse, d.Sharing = reuseOf(p, data.Cache), sharingOf(p)
	}
	if s := a.Sessions; s != nil {
		d.Sessions = sessionsOf(s)
	}
	if s := data.Service; s != nil && a.Arrivals != nil {
		d.Concurrency = &concurrencyJSON{number(s.TTFT), number(s.TPOT), numberOf(s.Little), numberOf(s.Mean), s.Peak}
	}
	if at := a.Arrivals; at != nil {
		d.DurationMs = new(number(at.Duration()))
		d.Arrivals = arrivalsOf(at)
	}
	return d
}

func infiniteOf(p *analyze.Prefix) infiniteJSON {
	return infiniteJSON{
		BlockHitRate:       new(number(p.Infinite.Block)),
		TokenHitRate:       numberOf(p.Infinite.Token),
		MeanRequestHitRate: new(number(p.Infinite.MeanRequest)),
		HitBlocks:          &p.HitBlocks,
		HitTokens:          &p.HitTokens,
		RequestsNoHit:      &p.NoHit,
		RequestsAllHit:     &p.AllHit,
	}
}

func arrivalsOf(at *analyze.Arrivals) arrivalsJSON {
	var grid *number
	if at.Grid != nil {
		grid = new(number(at.Grid.Step))
	}
	return arrivalsJSON{
		Peak1s: &at.Peak1s, Peak60s: &at.Peak60s, GridMs: grid,
		Dispersion1s: numberOf(at.Dispersion1s), Dispersion60s: numberOf(at.Dispersion60s),
		Rate:               numberOf(at.Rate),
		CV:                 numberOf(at.CV),
		DistinctTimestamps: &at.DistinctTimestamps,
		MaxPerTimestamp:    &at.MostAtOnce,
		FirstMs:            new(number(at.First)),
		LastMs:             new(number(at.Last)),
		Requests:           &at.Requests,
		Backwards:          &at.Backwards,
	}
}

// distOf is nil for the distribution of no values.
func distOf(d stats.Sample) *distJSON {
	if d.Count == 0 {
		return nil
	}
	quantile := func(p float64) number { return number(d.Quantile(p)) }
	return &distJSON{
		Count: d.Count, Mean: number(d.Mean), Std: number(d.Std), Min: number(d.Min),
		P1: quantile(0.01), P5: quantile(0.05), P10: quantile(0.10),
		P25: quantile(0.25), P50: quantile(0.50), P75: quantile(0.75),
		P90: quantile(0.90), P95: quantile(0.95), P99: quantile(0.99), P99_9: quantile(0.999),
		Max: number(d.Max), Sum: number(d.Sum),
	}
}

// lengthOf is nil for the distribution of no values.
func lengthOf(d stats.Sample) *lengthJSON {
	if d.Count == 0 {
		return nil
	}
	bins := binsOf(d)
	h := histogramJSON{Log: bins.Log, Counts: d.Histogram(bins)}
	for _, edge := range bins.Edges {
		h.Edges = append(h.Edges, number(edge))
	}
	return &lengthJSON{distOf(d), h}
}
