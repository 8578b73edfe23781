package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"moontide/replay/settings"
)

// otherName is a flag of another tool, or of an older version, that is no other name of a
// flag. Some verbs ignore it, because moontide always does so, or say what to use instead.
type otherName struct {
	names, verbs []string
	instead      string
}

var (
	runVerbs     = words("replay bench")
	sendVerbs    = words("replay bench simulate")
	measureVerbs = words("replay bench simulate report fit-engine")
)

var otherNames = []otherName{
	{words("ignore-eos save-result"), runVerbs, ""},
	{words("api-key"), runVerbs, "use --api-key-env VARIABLE; other users can read a key on the command line"},
	{words("extra-inputs"), runVerbs, "use --extra-body JSON"},
	{words("rate-type profile"), sendVerbs, "use --rate R --arrival constant or poisson for a rate, --closed --max-concurrency N for a fixed concurrency"},
	{words("dataset-name dataset-path input-file"), sendVerbs, "give the trace as an argument, its format is auto-detected; --dataset FILE fills prompts with text"},
	{words("concurrency"), words("replay simulate"), "to limit requests in flight use --max-concurrency N, for a closed loop --closed --max-concurrency N"},
	{words("url base-url target"), words("simulate"), "the engines run in virtual time, and no request is sent"},
}

// olderNames are flags of older versions.
var olderNames = []otherName{
	{words("take"), words("replay bench simulate convert"), "use --limit N"},
	{words("kv-blocks"), words("replay bench simulate serve fit-engine"), "use num-gpu-blocks"},
	{words("kv-block-size"), words("replay bench simulate serve fit-engine"), "use engine-block-size"},
	{words("router"), words("replay bench simulate serve"), "use --routing POLICY"},
	{words("max-lag max-lag-share max-failed max-prompts-off max-answers-off"), measureVerbs, "use --verdict with limits such as lag=10ms,failed=5%"},
	{words("insecure ca-file"), slices.Concat(measureVerbs, words("capture")), "use --tls insecure, or --tls ca=FILE"},
	{words("first-byte-timeout idle-timeout"), measureVerbs, "use --timeout TOTAL,FIRST,IDLE"},
	{words("closed ramp"), words("bench"), "runs without --rate and --speedup are closed loops"},
	{words("part rendezvous"), words("bench"), "a set runs in one process"},
	{words("format"), words("report"), "use --output vllm, dynamo, moreh or aiperf"},
	{words("json"), words("fit-engine"), "use --output csv, and the engine file of -o"},
	{words("find"), words("simulate"), "use a list such as --engines 1..16 with --slo"},
}

func words(text string) []string { return strings.Fields(text) }

// ignored is what findOther returns for a flag of another tool for what moontide always does.
const ignored = "-"

// findOther returns the verb's flag for another tool's name, ignored, or "" and what to use
// instead; both are "" if the name is unknown.
func findOther(verb *cli.Command, name string) (flag, instead string) {
	if name == "output-file" && findFlag(verb.Flags, "out") != nil {
		return "out", ""
	}
	for _, other := range slices.Concat(otherNames, olderNames) {
		if slices.Contains(other.names, name) && slices.Contains(other.verbs, verb.Name) {
			if other.instead == "" {
				return ignored, ""
			}
			return "", other.instead
		}
	}
	for i := range settings.Table {
		if row := &settings.Table[i]; slices.Contains(row.Others, name) {
			for _, same := range append([]string{row.Name}, row.Others...) { // synth has num-requests
				if findFlag(verb.Flags, same) != nil {
					return same, ""
				}
			}
		}
	}
	if row := settings.Find(name); row != nil && findFlag(verb.Flags, setFlag) != nil {
		value := "VALUE"
		if row.IsBool() {
			value = "true"
		}
		return "", "use --set " + row.Name + "=" + value
	}
	return "", ""
}

// apiOf returns the API of a path or of another tool's backend.
func apiOf(value string) string {
	switch strings.ToLower(value) {
	case "/v1/completions", "v1/completions", "completions", "text_completions", "vllm", "openai":
		return "completions"
	case "/v1/chat/completions", "v1/chat/completions", "chat", "chat_completions", "openai-chat":
		return "chat"
	}
	return value
}
