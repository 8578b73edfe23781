// Package enginefile reads and writes engine.json: a deployment of simulated engines and,
// if its costs were fitted to measurements, the errors of held-out measurements, the range
// of loads, and what they were fitted to.
//
//	file, err := enginefile.Read("engine.json")
//	...
//	cluster, err := file.Deployment().New()
//
// The file is a JSON object:
//
//	{
//	  "format": "moontide engine",
//	  "version": 1,
//	  "deployment": {"engines": 2, "routing": "prefix", "request-latency": "17ms"},
//	  "engine": {"max-num-seqs": 256, "step-base": "4.2ms", "decode-per-context-token": "46.7ns"},
//	  "fit": {...}
//	}
//
// Its settings are the [engine.Parameters], by name, and routing. Times have a unit.
// "decode-engine" has the settings of decode engines if they differ from prefill
// engines. A setting that is missing is 0: no limit, or no cost. Section "fit" is the
// type [Fit]. A file without it may be written by hand.
//
// Read refuses unknown keys. The same fit gives the same bytes.
package enginefile
