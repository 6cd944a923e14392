// tools/probe/checkpoint.hpp: writes the probe as a model that engines load.
//
// Formats  hf    config.json, generation_config.json, tokenizer.json, tokenizer_config.json and
//                model.safetensors: a Llama model, with a window a Mistral model.
//          gguf  probe.gguf, version 3: a Llama model. Rows of Q and K are in the order that
//                llama.cpp's RoPE expects: both dimensions of a pair are neighbours.
// Bytes    are the same on every machine. No more than one row of a tensor is in memory.
// Text     Each token has a text. A value token is one character from U+4E00, so a prompt can be
//          sent as text, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/contract/values/numeric.hpp"
#include "reference/probe/tables.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::tools {

enum class ModelFormat : std::uint8_t { kHf, kGguf };

struct CheckpointOptions {
  ModelFormat format = ModelFormat::kHf;
  StorageType dtype = StorageType::kBf16;  ///< hf: f32, bf16, f16; gguf: f32, f16
  probe::Shape shape = {};                 ///< gguf: no window
};

/// Writes the files into the folder `folder`, each whole or not at all; config.json is the last.
/// Returns  the bytes of all files.
/// Errors   of traces::OutputFile
[[nodiscard]] traces::TraceResult<std::uint64_t> write_checkpoint(const std::string& folder,
                                                                  const CheckpointOptions& options);

/// The text of a token, in UTF-8.
/// Requires  token < Shape::kVocabulary.
[[nodiscard]] std::string token_text(probe::Token token);

}  // namespace kvo::tools
