// Command size writes large traces to standard output, to measure the time and memory
// of moontide with them:
//
//	go run ./.ci/size -rows 10000000 > rows.jsonl                                # 970 MB
//	go run ./.ci/size -rows 5000000 -shared 99.7 -fresh 12 > blocks.jsonl          # 500 million blocks, 60 million distinct
//
// Each row continues one of many conversations, some of them much more often: it has all
// of its blocks and some fresh ones. Conversations begin with one of many system prompts,
// and end at random. The same flags give the same trace.
//
// With -measure it runs moontide on such traces: see README.md and the script run.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"moontide/trace"
	"moontide/trace/format"
)

const (
	blockSize     = 512
	conversations = 1 << 16 // at a time
	prompts       = 1000    // system prompts
	rate          = 20.0    // requests a second
)

func main() {
	var g generator
	rows := flag.Int("rows", 10_000_000, "number of rows")
	seed := flag.Uint64("seed", 1, "random seed")
	flag.Float64Var(&g.shared, "shared", 2, "mean number of blocks that a row shares with earlier ones, at least 1")
	flag.Float64Var(&g.fresh, "fresh", 0.7, "mean number of fresh blocks in a row")
	flag.BoolVar(&g.hashes, "hashes", false, "block ids are hashes instead of numbers")
	flag.BoolVar(&g.sessions, "sessions", false, "rows have a session id")
	flag.BoolVar(&g.requests, "requests", false, "rows have a request id, and name that of the turn before in after")
	flag.BoolVar(&g.delays, "delays", false, "later turns have a delay instead of a timestamp")
	disorder := flag.Float64("disorder", 0, "rows arrive up to this many milliseconds late, so that the trace needs sorting")
	moontide := flag.String("measure", "", "measure this moontide `PROGRAM` instead, and write README.md")
	folder := flag.String("traces", filepath.Join("runs", "size"), "`FOLDER` for the traces of -measure")
	only := flag.String("only", "", "measure only the tasks that match this `REGEXP`, and keep the other figures")
	render := flag.Bool("render", false, "write README.md from results.json and measure nothing")
	flag.Parse()
	if *render {
		*moontide = ""
	}
	if *moontide != "" || *render {
		if err := measure(*moontide, *folder, *only); err != nil {
			log.Fatal(err)
		}
		return
	}
	g.random = rand.New(rand.NewPCG(*seed, 0))
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	var line []byte
	now := 0.0
	for range *rows {
		now += g.random.ExpFloat64() * 1000 / rate
		r := g.row()
		if !r.Delay.Set {
			r.Timestamp = trace.Some(math.Floor(now + *disorder*g.random.Float64()))
		}
		line = append(format.AppendRow(line[:0], r), '\n')
		out.Write(line)
	}
	if err := out.Flush(); err != nil {
		log.Fatal("writing trace: ", err)
	}
	log.Printf("%d rows, %d block references, %d distinct blocks, %d sessions", g.rows, g.references, g.next, g.begun)
}

// generator makes requests.
type generator struct {
	random                     *rand.Rand
	shared, fresh              float64
	hashes                     bool
	sessions, requests, delays bool
	open                       [conversations]conversation
	begun, rows                int
	references                 int
	next                       uint64 // id
	ids                        []uint64
}

type conversation struct {
	number, latest int // from 1; latest is the last row
	blocks         []blocks
}

// blocks are consecutive block ids.
type blocks struct{ first, n uint64 }

func (g *generator) row() trace.Request {
	g.rows++
	// The probability of a conversation falls with the power of its number.
	c := &g.open[int(conversations*math.Pow(g.random.Float64(), 3))]
	// Conversations go on so that the mean prompt has g.shared blocks before its fresh ones.
	later := c.number > 0 && g.random.Float64()*(g.shared-1+g.fresh) < g.shared-1
	if !later {
		g.begun++
		*c = conversation{number: g.begun, blocks: append(c.blocks[:0], blocks{uint64(prompts * math.Pow(g.random.Float64(), 3)), 1})}
	}
	g.next = max(g.next, prompts)
	if n := uint64(g.random.ExpFloat64()*g.fresh + 0.5); n > 0 {
		c.blocks = append(c.blocks, blocks{g.next, n})
		g.next += n
	}
	g.ids = g.ids[:0]
	for _, b := range c.blocks {
		for i := range b.n {
			g.ids = append(g.ids, g.id(b.first+i))
		}
	}
	g.references += len(g.ids)
	r := trace.Request{
		InputLength:  len(g.ids)*blockSize - g.random.IntN(blockSize),
		OutputLength: 1 + int(g.random.ExpFloat64()*200),
		HashIDs:      g.ids,
	}
	g.name(&r, c, later)
	c.latest = g.rows
	return r
}

// name gives a request its ids, and a later turn its delay.
func (g *generator) name(r *trace.Request, c *conversation, later bool) {
	if g.sessions {
		r.SessionID = fmt.Sprintf("session-%d", c.number)
	}
	if g.requests {
		r.ID = fmt.Sprintf("request-%d", g.rows)
		if later {
			r.After = []string{fmt.Sprintf("request-%d", c.latest)}
		}
	}
	if g.delays && later {
		r.Delay = trace.Some(math.Floor(g.random.ExpFloat64() * 20_000))
	}
}

func (g *generator) id(n uint64) uint64 {
	if !g.hashes {
		return n
	}
	return rand.NewPCG(n, 1).Uint64()
}
