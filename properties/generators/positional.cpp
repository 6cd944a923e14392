// Random scripts for the caches of contract positional.
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "properties/generators/generators.hpp"
#include "properties/generators/positional_case.hpp"
#include "properties/generators/positional_model.hpp"
#include "reference/contract/tags.hpp"

namespace kvo::positional {
namespace {

// States worth reaching.
constexpr std::string_view kWindowExceeded = "window exceeded";
constexpr std::string_view kCellsReused = "ring of cells reused";
constexpr std::string_view kShared = "shared cells";
constexpr std::string_view kShifted = "middle removal with shift";
constexpr std::string_view kKeptBetween = "kept cells between moved ones";
constexpr std::string_view kFull = "full";
constexpr std::string_view kRecovered = "full and recovered";
constexpr std::string_view kEncoderReput = "encoder re-put";
constexpr std::string_view kFlagFell = "encoder result given up";
constexpr std::string_view kUnwound = "wrapper unwound";
constexpr std::string_view kSharedRefused = "removal refused for a shared cell";
constexpr std::string_view kNoShift = "no shift function";
constexpr std::string_view kReserve = "reserve pass";
constexpr std::string_view kAhead = "rows seeing ahead";
constexpr std::string_view kChunkCrossed = "chunk boundary crossed";
constexpr std::string_view kResumeRefused = "resume refused";
constexpr std::string_view kRounded = "padding rounded the range";
constexpr std::string_view kShiftFailed = "shift function failed";
constexpr std::string_view kMemberSelected = "member selected";
constexpr std::string_view kWindowRefused = "removal refused for the window";

class PositionalScript final : public OpStream {
 public:
  PositionalScript(std::uint64_t seed, const CacheKind& kind, DrawnCase drawn, Profile profile)
      : draw_(seed),
        kind_(kind),
        case_(std::move(drawn)),
        documented_(profile == Profile::kDocumented) {
    for (const DrawnMember& member : case_.members) {
      models_.emplace_back(member.setup);
      if (member.setup.flavour != Flavour::kEncoder && !member.shift) lacks_shift_ = true;
    }
    weights_ = swarm(draw_, {46, 7, 5, 3, 7, 7, 7, 6, 12, 2, 4, 3, 2, 1, 4, 1}, 1);
    perturb_percent_ = draw_.one_of<std::uint64_t>({0, 5, 25});
    sloppy_percent_ = draw_.one_of<std::uint64_t>({0, 0, 1, 12});
  }

  std::optional<Op> next() override {
    if (!initialized_ && planned_.empty() && !draw_.percent(1)) plan_init();
    while (true) {
      Op op = planned_.empty() ? random_op() : planned();
      // What a kind does not offer is drawn again.
      if (std::ranges::find(kind_.operations, &op.kind()) != kind_.operations.end()) return op;
    }
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (const auto* init = op.as<Init>()) saw_init(*init, seen);
    if (const auto* pass = op.as<StartForward>()) saw_pass(*pass, seen, labels);
    if (const auto* remove = op.as<Remove>()) saw_remove(*remove, seen, labels);
    if (const auto* resume = op.as<CanResume>()) saw_resume(*resume, seen, labels);
    if (seen.error) return;
    if (const auto* layer = op.as<SetLayer>()) layer_ = layer->layer;
    if (const auto* type = op.as<SetLayerType>()) member_ = type->type;
    if (op.as<Put>() != nullptr) saw_put(labels);
    if (op.as<EncoderCached>() != nullptr) {
      const bool cached = seen.as<EncoderCached::Returns>().value;
      if (std::exchange(cached_, cached) && !cached) labels.insert(kFlagFell);
    }
    if (const auto* causal = op.as<SetCausal>()) saw_set_causal(*causal, labels);
    if (const auto* copy = op.as<CopyPrefix>()) saw_copy(*copy, labels);
  }

 private:
  Op planned() {
    Op op = std::move(planned_.front());
    planned_.pop_front();
    return op;
  }

  Op random_op() {
    switch (draw_.weighted(weights_)) {
      case 0:
        return forward();
      case 1:
        return Op::of(Get{});
      case 2:
        return put(true);
      case 3:
        return Op::of(SetLayer{layer()});
      case 4:
        return set_causal();
      case 5:
        return copy_prefix();
      case 6:
        return can_resume();
      case 7:
        return remove_tail();
      case 8:
        return remove_middle();
      case 9:
        return Op::of(Remove{sequence(), 0, kMaxPosition});
      case 10:
        return remove_nonsense();
      case 11:
        return reserve();
      case 12:
        return Op::of(SetLayerType{type()});
      case 13:
        return Op::of(UnderlyingCache{});
      case 14:
        return Op::of(EncoderCached{});
      default:
        return rare();
    }
  }

  // ---- Drawing ----

  void plan_init() {
    Init init = case_.init;
    if (refused_inits_ > 0) {
      // A small capacity makes memory unbounded, and an encoder wants one sequence (OK-12, OK-70).
      init.max_sequences = 1;
      init.capacity = draw_.between(1, 2);
      if (case_.has_encoder()) planned_.push_back(Op::of(SetConfig{1, false, MaskType::kF32}));
    } else if (draw_.percent(8)) {
      planned_.push_back(set_config());
    }
    planned_.push_back(Op::of(init));
  }

  Op set_config() {
    SetConfig config{.cache_padding = draw_.one_of<std::int64_t>({0, 1, 2, 4}),
                     .permuted_v = draw_.percent(50),
                     .mask_dtype = draw_.one_of({MaskType::kUnset, MaskType::kF16})};
    if (case_.has_encoder()) config.cache_padding = 1;
    if (models_.size() > 1 && draw_.percent(50))
      config.target = draw_.between(0, std::ssize(models_) - 1);
    return Op::of(config);
  }

  std::int64_t sequence() {
    if (draw_.percent(2)) return draw_.one_of<std::int64_t>({-1, 3, 1000});
    return case_.sequences[draw_.below(case_.sequences.size())];
  }

  // A sequence that holds something, if draws find one.
  std::int64_t held_sequence() {
    std::int64_t drawn = sequence();
    for (int tries = 0; tries < 4 && next_position(drawn) == 0; ++tries) drawn = sequence();
    return drawn;
  }

  std::int64_t layer() {
    if (draw_.percent(3)) return draw_.one_of<std::int64_t>({-1, 7, case_.layers});
    return draw_.between(0, case_.layers - 1);
  }

  std::int64_t type() {
    if (draw_.percent(4)) return draw_.one_of<std::int64_t>({-1, std::ssize(models_)});
    return draw_.between(0, std::ssize(models_) - 1);
  }

  [[nodiscard]] const CellModel* causal() const {
    for (std::size_t i = 0; i < models_.size(); ++i)
      if (!is_encoder(i)) return &models_[i];
    return nullptr;
  }

  [[nodiscard]] bool is_encoder(std::size_t member) const {
    return case_.members[member].setup.flavour == Flavour::kEncoder;
  }

  [[nodiscard]] std::vector<std::int32_t> positions(std::int64_t sequence) const {
    return causal() == nullptr ? std::vector<std::int32_t>() : causal()->positions(sequence);
  }

  [[nodiscard]] std::int32_t next_position(std::int64_t sequence) const {
    if (causal() == nullptr) {
      const auto found = next_.find(sequence);
      return found == next_.end() ? 0 : found->second;
    }
    const std::vector<std::int32_t> all = positions(sequence);
    // The model may be wrong after a call that failed half-way.
    return all.empty() ? 0 : std::max(all.back() + 1, 0);
  }

  std::int32_t some_position(std::int64_t sequence) {
    return static_cast<std::int32_t>(draw_.between(0, next_position(sequence)));
  }

  void add(StartForward& pass, std::int64_t sequence, std::map<std::int64_t, std::int32_t>& next) {
    const auto at = next.try_emplace(sequence, next_position(sequence)).first;
    pass.positions.push_back(at->second++);
    pass.seqs.push_back(sequence);
  }

  StartForward batch() {
    StartForward pass;
    std::map<std::int64_t, std::int32_t> next;
    const std::int64_t tokens = draw_.between(1, case_.init.max_batch);
    switch (draw_.weighted({40, 42, 18})) {
      case 0:  // one token for each of some sequences
        for (const std::int64_t one : case_.sequences)
          if (pass.seqs.empty() || draw_.percent(60)) add(pass, one, next);
        break;
      case 1: {
        const std::int64_t one = sequence();
        for (std::int64_t i = 0; i < tokens; ++i) add(pass, one, next);
        break;
      }
      default:
        for (std::int64_t i = 0; i < tokens; ++i) add(pass, sequence(), next);
    }
    if (draw_.percent(perturb_percent_)) perturb(draw_, pass);
    return pass;
  }

  void add_multimodal(StartForward& pass) {
    const bool wanted = case_.has_encoder() ? draw_.percent(55) : draw_.percent(3);
    if (!wanted) return;
    const std::int64_t tokens = std::ssize(pass.positions);
    std::vector<std::int64_t> indices;
    while (tokens > 0 && std::ssize(indices) < 2 && !(draw_.percent(40) && !indices.empty()))
      indices.push_back(draw_.percent(99) ? draw_.between(0, tokens - 1) : tokens);
    pass.multimodal = std::move(indices);
  }

  Op forward() {
    StartForward pass;
    if (!draw_.percent(1)) pass = batch();
    add_multimodal(pass);
    return Op::of(std::move(pass));
  }

  Op reserve() {
    StartForward pass = batch();
    pass.reserve = true;
    add_multimodal(pass);
    return Op::of(std::move(pass));
  }

  // Distinct and exact in the storage type, but for bf16.
  Tensor rows(std::int64_t tokens, std::int64_t dim, float sign) {
    constexpr std::uint64_t kExactInF16 = 2'048;
    Tensor tensor = make_tensor({tokens, case_.heads, dim});
    for (float& element : tensor.floats()) {
      const std::uint64_t n = tags_++;
      element = sign * tag(1 + (case_.init.dtype == StorageType::kF32 ? n : n % kExactInF16));
    }
    return tensor;
  }

  // Rows for the batch in the member chosen; now and then of another shape, if they may be spoilt.
  Op put(bool spoilt) {
    std::int64_t tokens = std::ssize(pass_.positions);
    const auto member =
        static_cast<std::size_t>(std::clamp<std::int64_t>(member_, 0, std::ssize(models_) - 1));
    if (is_encoder(member)) tokens = case_.encoder_tokens;
    if (spoilt && draw_.percent(12)) tokens = draw_.between(0, 4);
    Put put{rows(tokens, case_.k_dim, 1), rows(tokens, case_.v_dim, -1)};
    if (spoilt && draw_.percent(6)) put.v = rows(tokens + 1, case_.v_dim, -1);
    if (spoilt && draw_.percent(6)) put.k = rows(tokens, case_.k_dim + 1, 1);
    return Op::of(std::move(put));
  }

  Op set_causal() {
    SetCausal call;
    const std::int64_t tokens = std::ssize(pass_.positions);
    const std::int64_t count = draw_.between(0, std::min<std::int64_t>(tokens, 3));
    for (std::int64_t i = 0; i < count; ++i)
      call.except.push_back(draw_.percent(92) ? draw_.between(0, tokens - 1)
                                              : draw_.one_of<std::int64_t>({-1, tokens, 100}));
    if (draw_.percent(40) && !except_.empty()) call.except = except_;
    if (draw_.percent(18)) call.ctx = draw_.percent(20);
    return Op::of(std::move(call));
  }

  Op copy_prefix() {
    const std::int64_t source = draw_.percent(90) ? held_sequence() : sequence();
    std::int64_t target = sequence();
    for (int tries = 0; tries < 3 && target == source; ++tries)
      target = draw_.percent(30) ? draw_.between(0, 3) : sequence();
    std::int32_t length = some_position(source);
    if (draw_.percent(25)) length = next_position(source);
    if (draw_.percent(4)) length = draw_.one_of<std::int32_t>({-1, 0, 100, kMaxPosition});
    return Op::of(CopyPrefix{source, target, length});
  }

  Op can_resume() {
    const std::int64_t of = draw_.percent(90) ? held_sequence() : sequence();
    std::int32_t position = next_position(of);
    if (draw_.percent(60)) position = some_position(of);
    if (draw_.percent(10)) position += static_cast<std::int32_t>(draw_.between(-3, 3));
    if (draw_.percent(2)) position = -2;
    return Op::of(CanResume{of, position});
  }

  Op remove_tail() {
    const std::int64_t of = held_sequence();
    return Op::of(Remove{of, some_position(of), kMaxPosition});
  }

  // What an engine does whose context is full: the first tokens stay, those after them go.
  Op remove_middle() {
    const std::int64_t of = held_sequence();
    const std::vector<std::int32_t> all = positions(of);
    if (all.size() < 2) return remove_tail();
    const std::int32_t own = causal()->unshared_from(of);
    Remove remove{of, 0, 0};
    // Best a range that leaves cells between those it moves, in a sequence whose cells are mixed.
    for (int tries = 0; tries < 4 && !causal()->keeps_between(remove); ++tries) {
      std::size_t from = draw_.below(all.size() - 1);
      if (own != kMaxPosition && draw_.percent(50))
        while (from + 1 < all.size() - 1 && all[from + 1] < own) ++from;
      const std::size_t to = from + 1 + draw_.below(all.size() - 1 - from);
      remove = {of, all[from], all[to]};
    }
    return Op::of(remove);
  }

  Op remove_nonsense() {
    const std::int64_t of = sequence();
    const std::int32_t at = some_position(of);
    const auto more = static_cast<std::int32_t>(draw_.between(1, 4));
    switch (draw_.below(6)) {
      case 0:
        return Op::of(Remove{of, at + more, at});
      case 1:
        return Op::of(Remove{of, at, at});
      case 2:
        return Op::of(Remove{of, at, next_position(of) + more});
      case 3:
        return Op::of(Remove{of, -more, at});
      case 4:
        return Op::of(Remove{of, at, at + more});
      default:
        return Op::of(Remove{of, next_position(of) + more, kMaxPosition});
    }
  }

  Op rare() {
    switch (draw_.weighted({4, 4, 1})) {
      case 0:
        return Op::of(case_.init);
      case 1:
        return set_config();
      default:
        return Op::of(Close{});
    }
  }

  // ---- Following ----

  void saw_init(const Init& init, const Observation& seen) {
    if (seen.error) {
      ++refused_inits_;
      return;
    }
    initialized_ = true;
    for (CellModel& model : models_) model.init(init, case_.backend.cache_padding);
  }

  // Puts and gets of the layers that a model has, each in the member it belongs to.
  void plan_layers(std::uint64_t put_percent) {
    const bool wrapper = &kind_ == &wrapper_kind();
    for (std::int64_t layer = 0; layer < case_.layers; ++layer) {
      if (draw_.percent(sloppy_percent_)) continue;
      planned_.push_back(Op::of(SetLayer{layer}));
      const std::int64_t member = layer % std::ssize(models_);
      if (wrapper && (member != 0 || layer > 0)) planned_.push_back(Op::of(SetLayerType{member}));
      const std::int64_t before = std::exchange(member_, member);
      if (draw_.percent(put_percent)) planned_.push_back(put(draw_.percent(2)));
      member_ = before;
      if (draw_.percent(65)) planned_.push_back(Op::of(Get{}));
    }
  }

  void saw_pass(const StartForward& pass, const Observation& seen, Labels& labels) {
    if (seen.error) {
      if (seen.failed_with(Code::kFull)) saw_full(pass, labels);
      return;
    }
    pass_ = pass;
    member_ = 0;
    except_.clear();
    if (pass.reserve) labels.insert(kReserve);
    if (!pass.reserve && std::exchange(was_full_, false)) labels.insert(kRecovered);
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (is_encoder(i)) continue;
      const PassEffects effects = models_[i].started(pass);
      if (effects.reused_evicted) labels.insert(kCellsReused);
      if (effects.window_exceeded) labels.insert(kWindowExceeded);
      if (effects.chunk_crossed) labels.insert(kChunkCrossed);
      if (effects.range_rounded) labels.insert(kRounded);
    }
    for (std::size_t i = 0; i < pass.positions.size() && !pass.reserve; ++i)
      next_[pass.seqs[i]] = pass.positions[i] + 1;
    if (draw_.percent(8)) planned_.push_back(set_causal());
    plan_layers(pass.reserve ? 60 : 100 - sloppy_percent_);
  }

  void saw_full(const StartForward& pass, Labels& labels) {
    labels.insert(kFull);
    was_full_ = true;
    bool later = false;
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (!is_encoder(i) && !models_[i].fits(pass)) {
        if (i > 0) labels.insert(kUnwound);
        break;
      }
      later = true;
    }
    if (!documented_) {
      for (CellModel& model : models_) model.failed(pass);
      // The unwind takes the batch out of the members before (OK-83).
      for (std::size_t i = 0; later && i < pass.seqs.size(); ++i)
        for (CellModel& model : models_)
          model.removed({pass.seqs[i], pass.positions[i], kMaxPosition});
    }
    if (documented_ && draw_.percent(50)) planned_.push_back(Op::of(Get{}));
    if (draw_.percent(45)) return;
    for (const std::int64_t number : case_.sequences)
      if (draw_.percent(60)) planned_.push_back(Op::of(Remove{number, 0, kMaxPosition}));
  }

  void saw_remove(const Remove& remove, const Observation& seen, Labels& labels) {
    if (!seen.error) {
      const bool mixed = causal() != nullptr && causal()->keeps_between(remove);
      if (mixed && seen.as<Remove::Returns>().shift_calls) labels.insert(kKeptBetween);
      for (CellModel& model : models_) model.removed(remove);
      if (next_.contains(remove.seq))
        next_[remove.seq] = std::min(next_[remove.seq], std::max(remove.begin, 0));
      const auto& calls = seen.as<Remove::Returns>().shift_calls;
      if (calls && !calls->empty() && remove.begin < remove.end) labels.insert(kShifted);
      if (draw_.percent(35)) planned_.push_back(Op::of(Get{}));
      return;
    }
    const Error& error = *seen.error;
    if (error == shared_later_cell())
      labels.insert(kSharedRefused);
    else if (error.code == Code::kOther)
      labels.insert(kShiftFailed);
    if (error.code == Code::kNotSupported) labels.insert(lacks_shift_ ? kNoShift : kWindowRefused);
    if (error.code == Code::kPrecondition || !draw_.percent(documented_ ? 10 : 70)) return;
    planned_.push_back(Op::of(Remove{remove.seq, 0, kMaxPosition}));
  }

  void saw_resume(const CanResume& resume, const Observation& seen, Labels& labels) {
    if (seen.error) return;
    if (!seen.as<CanResume::Returns>().value) {
      labels.insert(kResumeRefused);
    } else if (draw_.percent(35) && resume.pos < next_position(resume.seq)) {
      planned_.push_back(Op::of(Remove{resume.seq, resume.pos, kMaxPosition}));
    }
  }

  void saw_put(Labels& labels) {
    if (member_ < 0 || member_ >= std::ssize(models_)) return;
    if (member_ > 0) labels.insert(kMemberSelected);
    if (pass_.reserve) return;
    const bool is_new = put_.insert({member_, layer_}).second;
    if (!is_new && is_encoder(static_cast<std::size_t>(member_))) labels.insert(kEncoderReput);
  }

  void saw_set_causal(const SetCausal& call, Labels& labels) {
    except_ = call.except;
    const bool valid = std::ranges::any_of(call.except, [&](std::int64_t row) {
      return row >= 0 && row < std::ssize(pass_.positions);
    });
    if (valid && call.ctx.value_or(true)) labels.insert(kAhead);
    if (draw_.percent(60)) planned_.push_front(Op::of(Get{}));
  }

  void saw_copy(const CopyPrefix& copy, Labels& labels) {
    for (std::size_t i = 0; i < models_.size(); ++i)
      if (models_[i].copy_prefix(copy, documented_) && !is_encoder(i)) labels.insert(kShared);
    if (draw_.percent(40)) planned_.push_back(Op::of(CanResume{copy.dst, next_position(copy.dst)}));
  }

  Draw draw_;
  const CacheKind& kind_;
  DrawnCase case_;
  bool documented_;
  std::vector<CellModel> models_;  // one a member; an encoder's is not used
  bool lacks_shift_ = false;
  std::vector<std::uint64_t> weights_;
  std::uint64_t perturb_percent_;  // batches out of the ordinary
  std::uint64_t sloppy_percent_;   // layers left out of a pass
  std::uint64_t tags_ = 0;
  bool initialized_ = false;
  std::uint64_t refused_inits_ = 0;
  StartForward pass_;
  std::vector<std::int64_t> except_;
  bool was_full_ = false;
  std::int64_t member_ = 0;
  std::int64_t layer_ = 0;
  bool cached_ = false;                        // what encoder_cached said last
  std::map<std::int64_t, std::int32_t> next_;  // where there is no causal member
  std::set<std::pair<std::int64_t, std::int64_t>> put_;
  std::deque<Op> planned_;
};

Generator make_generator(const CacheKind& kind, const std::vector<std::string_view>& both,
                         const std::vector<std::string_view>& documented_only) {
  Generator generator{.kind = &kind,
                      .make =
                          [&kind](std::uint64_t seed, Profile profile) {
                            Draw draw(seed);
                            DrawnCase drawn = draw_case(draw, kind);
                            GeneratedCase made{
                                .setup = {.profile = profile, .config = config_of(drawn, kind)},
                                .ops = nullptr};
                            made.ops = std::make_unique<PositionalScript>(
                                draw.below(~std::uint64_t{0}), kind, std::move(drawn), profile);
                            return made;
                          },
                      .original_labels = both,
                      .documented_labels = both};
  generator.documented_labels.insert(generator.documented_labels.end(), documented_only.begin(),
                                     documented_only.end());
  return generator;
}

std::vector<std::string_view> causal_and(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> labels{kShared,    kKeptBetween,   kShifted,    kFull,
                                       kRecovered, kSharedRefused, kNoShift,    kReserve,
                                       kAhead,     kRounded,       kShiftFailed};
  labels.insert(labels.end(), more);
  return labels;
}

Generator windowed_generator(Flavour flavour) {
  return make_generator(kind_of(flavour),
                        causal_and({kWindowExceeded, kCellsReused, kResumeRefused}),
                        {kWindowRefused});
}

Generator wrapper_generator() {
  return make_generator(wrapper_kind(),
                        causal_and({kWindowExceeded, kCellsReused, kResumeRefused, kChunkCrossed,
                                    kEncoderReput, kUnwound, kMemberSelected}),
                        {kWindowRefused});
}

}  // namespace
}  // namespace kvo::positional

namespace kvo {

Generator positional_causal_generator() {
  return positional::make_generator(positional::kind_of(positional::Flavour::kCausal),
                                    positional::causal_and({}), {positional::kResumeRefused});
}

Generator positional_swa_generator() {
  return positional::windowed_generator(positional::Flavour::kSwa);
}

Generator positional_swa_mem_generator() {
  return positional::windowed_generator(positional::Flavour::kSwaMem);
}

Generator positional_chunked_generator() {
  return positional::make_generator(positional::kind_of(positional::Flavour::kChunked),
                                    positional::causal_and({positional::kChunkCrossed}),
                                    {positional::kResumeRefused});
}

Generator positional_encoder_generator() {
  return positional::make_generator(
      positional::kind_of(positional::Flavour::kEncoder),
      {positional::kEncoderReput, positional::kReserve, positional::kFlagFell}, {});
}

Generator positional_wrapper_generator() {
  return positional::wrapper_generator();
}

}  // namespace kvo
