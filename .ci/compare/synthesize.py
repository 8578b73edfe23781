"""Runs AIPerf's trace synthesizer, which has no command of its own.

synthesize.py TRACE OUTPUT PREFIX_LEN_MULTIPLIER
"""
import json
import sys

from aiperf.common import random_generator
from aiperf.dataset.synthesis.models import SynthesisParams
from aiperf.dataset.synthesis.synthesizer import Synthesizer

random_generator.init(1)
rows = Synthesizer(SynthesisParams(prefix_len_multiplier=float(sys.argv[3]))).synthesize_from_file(sys.argv[1])
with open(sys.argv[2], "w", encoding="utf-8") as out:
    for row in rows:
        out.write(json.dumps(row) + "\n")
