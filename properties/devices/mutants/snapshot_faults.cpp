#include "properties/devices/mutants/snapshot_faults.hpp"

namespace kvo::snapshot_devices {
namespace {

constexpr std::string_view kBlock = "cuda/snapshot/device_slots.hpp";
constexpr std::string_view kSlots = "cuda/snapshot/device_slots.cpp";
constexpr std::string_view kStaging = "cuda/memory/staging.cpp";
constexpr std::string_view kRing = "cuda/jobs/ring_rows.hpp";

}  // namespace

const std::vector<seeding::Fault>& faults() {
  static const std::vector<seeding::Fault> kFaults{
      {"snapshot.kv",
       "uploads_not_waited_for",
       "the default stream does not wait for the event behind an upload",
       "B070, F07: llama.cpp used input buffers before the copies into them were done",
       {{kStaging, "recorded ? device_->wait(Stream(), arrived_[side]) : recorded", "recorded"}}},
      {"snapshot.rotating",
       "returns_before_the_copies",
       "an update returns while its copies are under way",
       "B070, F07: llama.cpp overwrote the inputs of a step that was still running",
       {{kStaging, "device_->synchronize(Stream())", "Status()"}}},
      {"snapshot.kv",
       "left_block_is_freed",
       "the block that slots leave is freed when the copy out of it is queued",
       "B067, F07: a buffer of zerfoo's was freed before the copy from it was done",
       {{kSlots, "return device_->copy(room.row(at), from, rows * form.bytes());",
         "const Status queued = device_->copy(room.row(at), from, rows * form.bytes());"
         " (void)device_->free(block_->row(0)); return queued;"}}},
      {"snapshot.rotating",
       "written_under_snapshots",
       "a slot is overwritten in a block that a snapshot shares",
       "B063, F07: a block of vLLM's was given to a load while a step still read it",
       {{kSlots, "(mine && behind_used) || block_.use_count() == 1", "true"}}},
      {"snapshot.kv",
       "rows_taken_for_there",
       "rows that are restored count as there where there are as many slots",
       "B061, F07: vLLM found a block by a look that was stale when it was used",
       {{kSlots, "block_ == rows.block && begin_ + at == rows.begin", "block_ != nullptr"}},
       std::nullopt,
       30},
      {"snapshot.kv",
       "heads_packed_by_token",
       "rows are put in place as if they were given token by token",
       "B081, F09: a kernel of zerfoo's read heads by the wrong stride",
       {{kSlots, "pack_head_major(to, from, planes, given, dim, 0, planes)",
         "pack_head_major(to, from, given, planes, dim, 0, given)"}}},
      {"snapshot.rotating",
       "last_row_not_turned",
       "the last row of a ring that is put in order is read behind the ring's end",
       "B083, F09: FlashInfer read rows behind the last one of a page",
       {{kRing, "(first + i / width) % capacity",
         "i / width == count - 1 ? first + i / width : (first + i / width) % capacity",
         "struct RingLinearise {"}},
       Profile::kDocumented},
      {"snapshot.kv",
       "row_in_16_bits",
       "the place of a row is computed in 16 bits",
       "B089, F10: vLLM computed the place of a slot in 32 bits",
       {{kBlock, "at * form_.bytes()", "static_cast<std::int16_t>(at * form_.bytes())"}}},
  };
  return kFaults;
}

}  // namespace kvo::snapshot_devices
