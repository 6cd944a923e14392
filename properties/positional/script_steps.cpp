// Steps of the random scripts of contract positional.
#include "properties/campaign/storage.hpp"
#include "properties/positional/script.hpp"

namespace kvo::positional {

void PositionalScript::plan_init() {
  Init init = case_.init;
  if (refused_inits_ > 0) {
    // A small capacity makes memory unbounded, and an encoder wants one sequence (OK-12, OK-70).
    init.max_sequences = 1;
    init.capacity = draw().between(1, 2);
    if (case_.has_encoder()) plan(SetConfig{1, false, MaskType::kF32});
  } else if (draw().percent(8)) {
    plan(set_config());
  }
  plan(init);
}

// A sequence that holds something, if draws find one.
std::int64_t PositionalScript::held_sequence() {
  std::int64_t drawn = sequence();
  for (int tries = 0; tries < 4 && next_position(drawn) == 0; ++tries) drawn = sequence();
  return drawn;
}

StartForward PositionalScript::batch() {
  StartForward pass = draw_batch(draw(), case_, [&](std::int64_t of) { return next_position(of); });
  if (draw().percent(perturb_percent_)) perturb(draw(), pass);
  return pass;
}

void PositionalScript::add_multimodal(StartForward& pass) {
  // Without one an encoder remembers nothing (OK-71); other caches ignore it.
  if (!draw().percent(case_.has_encoder() ? 55 : 3)) return;
  const std::int64_t tokens = std::ssize(pass.positions);
  std::vector<std::int64_t> indices;
  while (tokens > 0 && std::ssize(indices) < 2 && !(draw().percent(40) && !indices.empty()))
    indices.push_back(draw().percent(99) ? draw().between(0, tokens - 1) : tokens);
  pass.multimodal = std::move(indices);
}

Op PositionalScript::forward() {
  StartForward pass;
  if (case_.in_order || !draw().percent(1)) pass = batch();  // an empty batch is refused (OK-29)
  add_multimodal(pass);
  return Op::of(std::move(pass));
}

// Distinct and exact in the storage type, but for bf16 and what is narrower.
Tensor PositionalScript::rows(std::int64_t tokens, std::int64_t dim, float sign) {
  constexpr std::uint64_t kExactInF16 = 2'048;
  Tensor tensor = make_tensor({tokens, case_.heads, dim});
  if (case_.odd_rows) {
    fill_oddly(draw(), tensor);
    return tensor;
  }
  for (float& element : tensor.floats()) {
    const std::uint64_t n = tags_++;
    element = sign * tag(1 + (case_.init.dtype == StorageType::kF32 ? n : n % kExactInF16));
  }
  return tensor;
}

// Rows for the batch in a member; now and then of another shape, if they may be spoilt.
Op PositionalScript::put(std::int64_t member, bool spoilt) {
  std::int64_t tokens = std::ssize(pass_.positions);
  if (is_member(member) && case_.is_encoder(static_cast<std::size_t>(member)))
    tokens = case_.encoder_tokens;
  if (spoilt && draw().percent(12)) tokens = draw().between(0, 4);
  Put put{rows(tokens, case_.k_dim, 1), rows(tokens, case_.v_dim, -1)};
  if (spoilt && draw().percent(6)) put.v = rows(tokens + 1, case_.v_dim, -1);
  if (spoilt && draw().percent(6)) put.k = rows(tokens, case_.k_dim + 1, 1);
  return Op::of(std::move(put));
}

Op PositionalScript::set_causal() {
  SetCausal call;
  const std::int64_t tokens = std::ssize(pass_.positions);
  const std::int64_t count = draw().between(0, std::min<std::int64_t>(tokens, 3));
  for (std::int64_t i = 0; i < count; ++i)
    call.except.push_back(draw().percent(92) ? draw().between(0, tokens - 1)
                                             : draw().one_of<std::int64_t>({-1, tokens, 100}));
  // A list given again builds no mask (OK-40).
  if (draw().percent(40) && !except_.empty()) call.except = except_;
  if (draw().percent(18)) call.ctx = draw().percent(20);
  return Op::of(std::move(call));
}

Op PositionalScript::copy_prefix() {
  const std::int64_t source = draw().percent(90) ? held_sequence() : sequence();
  std::int64_t target = sequence();
  for (int tries = 0; tries < 3 && target == source; ++tries)
    target = draw().percent(30) ? draw().between(0, 3) : sequence();
  std::int32_t length = some_position(source);
  if (draw().percent(25)) length = next_position(source);
  if (draw().percent(4)) length = draw().one_of<std::int32_t>({-1, 0, 100, kMaxPosition});
  return Op::of(CopyPrefix{source, target, length});
}

Op PositionalScript::can_resume() {
  const std::int64_t of = draw().percent(90) ? held_sequence() : sequence();
  std::int32_t position = next_position(of);
  if (draw().percent(60)) position = some_position(of);
  if (draw().percent(10)) position += static_cast<std::int32_t>(draw().between(-3, 3));
  if (draw().percent(2)) position = -2;
  return Op::of(CanResume{of, position});
}

// What an engine does whose context is full: the first tokens stay, those after them go.
Op PositionalScript::remove_middle() {
  const std::int64_t of = held_sequence();
  const std::vector<std::int32_t> all = cells_.positions(of);
  if (all.size() < 2) return remove_tail();
  const std::int32_t own = cells_.unshared_from(of);
  Remove remove{of, 0, 0};
  // Best a range that leaves cells between those it moves, in a sequence whose cells are mixed.
  for (int tries = 0; tries < 4 && !cells_.keeps_between(remove); ++tries) {
    std::size_t from = draw().below(all.size() - 1);
    // Shared cells behind the range refuse the removal (OK-67): half the time they lie before.
    if (own != kMaxPosition && draw().percent(50))
      while (from + 1 < all.size() - 1 && all[from + 1] < own) ++from;
    const std::size_t to = from + 1 + draw().below(all.size() - 1 - from);
    remove = {of, all[from], all[to]};
  }
  return Op::of(remove);
}

// Inverted, empty, too long, from below 0, anywhere, behind everything.
Op PositionalScript::remove_nonsense() {
  const std::int64_t of = sequence();
  const std::int32_t at = some_position(of);
  const std::int32_t end = next_position(of);
  const auto more = static_cast<std::int32_t>(draw().between(1, 4));
  return Op::of(draw().one_of<Remove>({{of, at + more, at},
                                       {of, at, at},
                                       {of, at, end + more},
                                       {of, -more, at},
                                       {of, at, at + more},
                                       {of, end + more, kMaxPosition}}));
}

// Puts and gets of the layers that a model has, each in the member it belongs to.
void PositionalScript::plan_layers(std::uint64_t put_percent) {
  const bool wrapper = !member_kind_of(kind_);
  for (std::int64_t layer = 0; layer < case_.layers; ++layer) {
    if (draw().percent(sloppy_percent_)) continue;
    plan(SetLayer{layer});
    const std::int64_t member = layer % std::ssize(case_.members);
    if (wrapper && layer > 0) plan(SetLayerType{member});
    if (draw().percent(put_percent)) plan(put(member, draw().percent(2)));
    if (draw().percent(65)) plan(Get{});
  }
}

}  // namespace kvo::positional
