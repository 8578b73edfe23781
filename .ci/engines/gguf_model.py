"""Writes a model's folder as a GGUF file with random weights: gguf_model.py DIR FILE"""

import json
import sys

import gguf
import numpy

folder, path = sys.argv[1:]
read = lambda name: json.load(open(f"{folder}/{name}"))
config, tokenizer = read("config.json"), read("tokenizer.json")
special = {token["id"]: token["special"] for token in tokenizer["added_tokens"]}
vocabulary = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)

w = gguf.GGUFWriter(path, "llama")
w.add_name("tiny")
w.add_context_length(config["max_position_embeddings"])
w.add_embedding_length(config["hidden_size"])
w.add_feed_forward_length(config["intermediate_size"])
w.add_block_count(config["num_hidden_layers"])
w.add_head_count(config["num_attention_heads"])
w.add_head_count_kv(config["num_key_value_heads"])
w.add_rope_dimension_count(config["head_dim"])
w.add_rope_freq_base(config["rope_theta"])
w.add_layer_norm_rms_eps(config["rms_norm_eps"])
w.add_vocab_size(config["vocab_size"])
w.add_file_type(gguf.LlamaFileType.ALL_F32)
w.add_tokenizer_model("gpt2")
w.add_tokenizer_pre("gpt-2")
w.add_token_list(vocabulary)
normal, control, own = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED
w.add_token_types([(control if special[i] else own) if i in special else normal for i in range(len(vocabulary))])
w.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
w.add_eos_token_id(config["eos_token_id"])
w.add_add_bos_token(False)
w.add_chat_template(read("tokenizer_config.json")["chat_template"])

random = numpy.random.default_rng(1)
hidden, inner = config["hidden_size"], config["intermediate_size"]
keys = config["num_key_value_heads"] * config["head_dim"]


def matrix(name, rows, columns):
    w.add_tensor(name, random.normal(0, 0.05, (rows, columns)).astype(numpy.float32))


def norm(name):
    w.add_tensor(name, numpy.ones(hidden, numpy.float32))


matrix("token_embd.weight", config["vocab_size"], hidden)
norm("output_norm.weight")
for i in range(config["num_hidden_layers"]):
    block = f"blk.{i}."
    norm(block + "attn_norm.weight")
    norm(block + "ffn_norm.weight")
    matrix(block + "attn_q.weight", hidden, hidden)
    matrix(block + "attn_k.weight", keys, hidden)
    matrix(block + "attn_v.weight", keys, hidden)
    matrix(block + "attn_output.weight", hidden, hidden)
    matrix(block + "ffn_gate.weight", inner, hidden)
    matrix(block + "ffn_up.weight", inner, hidden)
    matrix(block + "ffn_down.weight", hidden, inner)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
