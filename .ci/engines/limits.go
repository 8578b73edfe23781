package main

import (
	"fmt"
	"os"
	"strings"

	"moontide/replay"
)

// serverMetrics checks that the run's figures of the server are those of its page.
func serverMetrics(s *session) error {
	rows := shared(30, 0)
	o, grew, err := s.measured("run", rows, append([]string{"--server-metrics", s.server.url}, oneByOne...)...)
	if err != nil {
		return err
	}
	m := &o.summary.Moontide
	s.equal("engine of the metrics", s.engine.name, m.Server.Engine)
	prompt, cached := 0, 0
	for _, r := range o.records {
		prompt, cached = prompt+r.Counts.Input.Value, cached+r.Counts.Cached.Value
	}
	if s.engine.name == "vllm" {
		s.equal("block size", s.engine.blockOf, m.Cache.Block)
		s.equal("tokens looked up, and those found, are those of the records", fmt.Sprint(prompt, " and ", cached), fmt.Sprint(m.Server.Queried, " and ", m.Server.Hit))
		probes := int(grew["vllm:prefix_cache_queries_total"]) - m.Server.Queried
		s.law("tokens of the probe", "fewer than 1,000", fmt.Sprint(probes), probes >= 0 && probes < 1000)
		return nil
	}
	// The page counts what was computed, of the probe too.
	computed := int(grew["llamacpp:prompt_tokens_total"])
	s.law("prompt tokens that the server computed", fmt.Sprint(prompt-cached, ", and up to 1,000 of the probe"), fmt.Sprint(computed), computed >= prompt-cached && computed < prompt-cached+1000)
	return nil
}

// refused replays two requests that must not become a run.
func (s *session) refused(law string, flags []string, words ...string) error {
	o, err := s.replay("refused", equal(2, 40, 4, 0), flags...)
	if err != nil {
		return err
	}
	s.equal("exit status: "+law, 1, o.exit)
	s.says("message: "+law, o.reason(words...), words...)
	return nil
}

// wrongModel: llama.cpp answers whatever the name.
func wrongModel(s *session) error {
	if s.engine.name == "llamacpp" {
		o, err := s.replay("run", equal(2, 40, 4, 0), "--model", "nosuch")
		if err != nil {
			return err
		}
		s.says("note that the server has no such model", o.reason("lists the model"), "nosuch", tiny.name)
		return nil
	}
	return s.refused("the server's words and its models", []string{"--model", "nosuch"}, "nosuch", tiny.name)
}

// beyondContext checks that one prompt that does not fit fails alone.
func beyondContext(s *session) error {
	rows := equal(10, 200, 8, 0)
	rows[4] = equal(1, maxModelLen+500, 8, 0)[0]
	o, err := s.replay("run", rows, oneByOne...)
	if err != nil {
		return err
	}
	if err := o.ran(); err != nil {
		return err
	}
	s.equal("completed and failed", "9 and 1", fmt.Sprint(o.summary.Completed, " and ", o.summary.Failed))
	s.equal("exit status with more than 5 % failed", 3, o.exit)
	r := o.records[min(4, len(o.records)-1)]
	s.equal("class and status", fmt.Sprint(replay.HTTPError, " 400"), fmt.Sprint(r.Class, " ", r.Status))
	s.says("error of the request", r.Error, "context")
	s.says("the verdict", o.evidence("failed"), "INVALID", "1 of 10", "context")
	return nil
}

// severalTokens checks the latencies of a server that sends five tokens a chunk.
func severalTokens(s *session) error {
	rows := equal(20, 200, 58, 0)
	o, grew, err := s.measured("run", rows, append([]string{"--api-key-env", keyVariable}, oneByOne...)...)
	if err != nil {
		return err
	}
	right := 0
	for _, r := range o.records {
		sum := 0
		for _, n := range r.ChunkTokens {
			sum += int(n)
		}
		if sum == 58 && len(r.ChunkTokens) == 13 { // 1, 11 times 5, 2
			right++
		}
	}
	s.equal("answers whose 13 chunks have 58 tokens", len(rows), right)
	s.within("mean ITL per token", grew.mean("vllm:inter_token_latency_seconds"), o.summary.Moontide.PerToken, 0.02, "ms")
	// The probe's answers of one token count as requests with a TPOT of 0.
	s.within("mean TPOT", 1000*grew["vllm:request_time_per_output_token_seconds_sum"]/float64(len(rows)), o.summary.MeanTPOT, 0.01, "ms")
	return nil
}

// apiKey checks a server that requires a key.
func apiKey(s *session) error {
	o, err := s.replay("with", equal(4, 40, 4, 0), "--api-key-env", keyVariable)
	if err != nil {
		return err
	}
	s.trusted(o)
	s.equal("completed with the key", 4, o.summary.Completed)
	s.equal("files and output with the key in them", 0, s.leaks(o))
	return s.refused("without the key", nil, "401", "--api-key-env")
}

// leaks counts the files of a run that contain the key.
func (s *session) leaks(o *outcome) (n int) {
	names := []string{o.dir + ".out"}
	files, _ := os.ReadDir(o.dir)
	for _, f := range files {
		names = append(names, o.dir+"/"+f.Name())
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err != nil || strings.Contains(string(text), s.server.opts.key) {
			n++
		}
	}
	return n
}

// smallVocabulary checks that token ids are those that the model has.
func smallVocabulary(s *session) error {
	return s.narrow("note about the range of token ids", "to 1874", []string{"token ids are drawn from", "to 1874"})
}

// fewWords checks prompts of words of a vocabulary with few of them.
func fewWords(s *session) error {
	return s.narrow("note about the words", "words of one token", []string{"800"}, append(s.tokenizer(), "--prompt", "words")...)
}

// narrow checks what a line of the output says about the vocabulary, and the counts.
func (s *session) narrow(law, line string, words []string, flags ...string) error {
	rows := shared(20, 0)
	o, err := s.replay("run", rows, append(flags, oneByOne...)...)
	if err != nil {
		return err
	}
	s.says(law, o.reason(line), words...)
	if err := o.ran(); err != nil {
		return err
	}
	s.trusted(o)
	s.counts(o, prompts(rows, 0, 0))
	return nil
}
